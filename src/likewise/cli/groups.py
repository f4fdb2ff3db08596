"""Groups of commands that are made only when they are called."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from pkgutil import resolve_name
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

HELP = ["-h", "--help"]

CommandTable = Mapping[str, tuple[Any, str]]
"""Name to what makes its command (a function, or 'module:function' of this package) and its summary."""


def command(function: Callable[..., Any]) -> Any:
    """Return a function with typer's annotations as a command."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings={"help_option_names": HELP})
    app.command()(function)
    return typer.main.get_command(app)


def typed(function: Callable[..., Any]) -> Callable[[], Any]:
    """Turn a function with typer's annotations into one that makes its command."""
    return partial(command, function)


class LazyGroup(TyperGroup):
    """A group whose commands are built when they are called, which imports no more than is needed."""

    _naming = False  # only names and summaries are needed

    def sections(self) -> Mapping[str, CommandTable]:
        """Return the headings of the help and the commands below each."""
        raise NotImplementedError

    def table(self) -> CommandTable:
        """Return the table of all commands."""
        return {name: entry for commands in self.sections().values() for name, entry in commands.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in their order."""
        return list(self.table())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Build and return a command; None if there is none of that name."""
        if cmd_name not in self.table():
            return None
        make, summary = self.table()[cmd_name]
        if self._naming:
            return TyperCommand(cmd_name, help=summary)
        made = resolve_name(f"likewise.cli.{make}")() if isinstance(make, str) else make()
        made.name, made.help = cmd_name, made.help or summary
        return made

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of a line; the error for an unknown one suggests a similar name."""
        self.commands = dict.fromkeys(self.table())  # type: ignore[assignment]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and their summaries without building the commands."""
        width = max(map(len, self.table()))
        for heading, commands in self.sections().items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, summary) in commands.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """List the words that may follow on the command line, without building the commands."""
        self._naming = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._naming = False


def app_of(
    kind: type[LazyGroup], help: str, root: Callable[..., None] = lambda: None, completion: bool = False
) -> typer.Typer:
    """Return a group as a typer application; `root` holds the options that belong to no command."""
    app = typer.Typer(
        cls=kind,
        help=help,
        no_args_is_help=True,
        add_completion=completion,
        rich_markup_mode=None,
        context_settings={"help_option_names": HELP},
    )
    app.callback()(root)
    return app


def group(
    help: str = "", kind: type[LazyGroup] = LazyGroup
) -> Callable[[Callable[[], CommandTable]], Callable[[], Any]]:
    """Turn a function that returns a table of commands into one that makes their group.

    The table is asked for when one of the commands is needed. Without a help text the group has the summary in the
    table that it is in.
    """

    def made(table: Callable[[], CommandTable]) -> Any:
        remembered = cache(table)

        class Group(kind):  # type: ignore[valid-type, misc]
            def sections(self) -> Mapping[str, CommandTable]:
                return {"Commands": remembered()}

        return typer.main.get_command(app_of(Group, help))

    return lambda table: partial(made, table)
