"""Groups of commands that are made only when they are called."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

HELP = ["-h", "--help"]

CommandTable = Mapping[str, tuple[Any, str]]
"""Name to what makes its command (a function, or 'module:function') and its summary."""


def command(function: Callable[..., Any]) -> Any:
    """Return a function with typer's annotations as a command."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings={"help_option_names": HELP})
    app.command()(function)
    return typer.main.get_command(app)


class LazyGroup(TyperGroup):
    """A group whose commands are built when they are called, because building one imports torch.

    A subclass gives the table of its commands.
    """

    _naming = False  # only names and summaries are needed

    def table(self) -> CommandTable:
        """Return the table of commands, called when one is needed."""
        raise NotImplementedError

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
        if isinstance(make, str):
            module, _, name = make.partition(":")
            make = getattr(import_module(module), name)
        made = make()
        made.name, made.help = cmd_name, made.help or summary
        return made

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of a line; the error for an unknown one suggests a similar name."""
        self.commands = dict.fromkeys(self.table())  # type: ignore[assignment]
        return super().resolve_command(ctx, args)

    def sections(self) -> Mapping[str, list[str]]:
        """Return the headings of the help and the names below each."""
        return {"Commands": list(self.table())}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and their summaries without building the commands."""
        table = self.table()
        width = max(map(len, table))
        for heading, names in self.sections().items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), table[name][1]) for name in names])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return what may follow on the command line, without building the commands."""
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


def group_of(table: Callable[[], CommandTable], help: str = "", kind: type[LazyGroup] = LazyGroup) -> Any:
    """Return a group of commands; the table is called when one of them is needed.

    Without a help text it has the summary in the table that it is in.
    """
    remembered = cache(table)

    class Group(kind):  # type: ignore[valid-type, misc]
        def table(self) -> CommandTable:
            return remembered()

    return typer.main.get_command(app_of(Group, help))
