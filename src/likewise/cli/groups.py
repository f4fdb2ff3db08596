"""Groups of commands that are built when they are called."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from pkgutil import resolve_name
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

HELP = ["-h", "--help"]

ClickContext = Any  # typer has click within it, under a private name
CommandTable = Mapping[str, tuple[Any, str]]
"""Name to what makes its command and its summary: a function, 'module:function' of this room, or a dotted name."""
CommandSections = Mapping[str, CommandTable]
"""Heading of a help text to the commands below it."""

HELP_ALL = "--help-all"
FEW = 30
"""The most options that a help text shows in one list; with more of them, those in a panel wait for `--help-all`."""
METHOD, TRAINING, JOBS = "The method", "Training", "Corpus and jobs"
_SETTINGS = {"help_option_names": HELP, "max_content_width": 100}


class PanelCommand(TyperCommand):
    """A command whose help shows its own options first, and with `--help-all` also shared options.

    An option's panel is typer's `rich_help_panel`; the options without one, and the options of `METHOD`, are its own.
    """

    presets: Mapping[str, str] = {}
    """Name of a preset to a line about it, which the help shows."""

    def parse_args(self, ctx: ClickContext, args: list[str]) -> list[str]:
        """Take `--help-all` for `--help` with all options."""
        if HELP_ALL in args:
            ctx.meta[HELP_ALL], args = True, HELP[1:]
        text = next((word for word in args if word.startswith("-") and " " in word), "")
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if text and hasattr(error, "option_name"):  # there is no such option
                error.message += f". Put -- before a text that begins with '-': -- {text!r}"  # type: ignore[attr-defined]
            raise

    def format_options(self, ctx: ClickContext, formatter: Any) -> None:
        """Write the presets and the options, panel by panel."""
        panels: dict[str, list[Any]] = {}
        options = [option for option in self.get_params(ctx) if option.get_help_record(ctx)]
        for option in options:
            kind = "Arguments" if option.param_type_name == "argument" else "Options"
            panel = getattr(option, "rich_help_panel", None) if len(options) > FEW else None
            panels.setdefault(panel or kind, []).append(option.get_help_record(ctx))
        shared = [] if ctx.meta.get(HELP_ALL) else [name for name in (TRAINING, JOBS) if name in panels]
        for heading in sorted({*panels} - {*shared}, key=["Arguments", "Options", METHOD, TRAINING, JOBS].index):
            with formatter.section(heading):
                formatter.write_dl(panels[heading])
            if heading == "Options" and self.presets:
                with formatter.section("Presets (the first is the default)"):
                    formatter.write_dl(list(self.presets.items()))
        if shared:
            counts = " and ".join(f"{len(panels[name])} on {name.lower()}" for name in shared)
            formatter.write_paragraph()
            formatter.write_text(f"{HELP_ALL} shows the other options: {counts}.")


def command(function: Callable[..., object]) -> Any:
    """Return a function with typer's annotations as a command."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=_SETTINGS)
    app.command(cls=PanelCommand)(function)
    return typer.main.get_command(app)


def typed(function: Callable[..., object]) -> Callable[[], Any]:
    """Turn a function with typer's annotations into one that makes its command."""
    return partial(command, function)


class LazyGroup(TyperGroup):
    """A group whose commands are built when they are called, which imports no more than is needed."""

    entries: Callable[[], CommandTable | CommandSections]
    """Returns the table of the commands, or sections of them."""
    _naming = False  # only names and summaries are needed

    def sections(self) -> CommandSections:
        """Return the headings of the help and the commands below each."""
        entries: Any = self.entries()
        return entries if isinstance(next(iter(entries.values())), Mapping) else {"Commands": entries}

    def table(self) -> CommandTable:
        """Return the table of all commands."""
        return {name: entry for commands in self.sections().values() for name, entry in commands.items()}

    def list_commands(self, ctx: ClickContext) -> list[str]:
        """Return the names of the commands, in their order."""
        return list(self.table())

    def get_command(self, ctx: ClickContext, cmd_name: str) -> Any:
        """Build and return a command; None if there is none of that name."""
        if cmd_name not in self.table():
            return None
        make, summary = self.table()[cmd_name]
        if self._naming:
            return TyperCommand(cmd_name, help=summary)
        if isinstance(make, str):
            make = resolve_name(make if "." in make else f"likewise.cli.{make}")
        made = make()
        made.name, made.help = cmd_name, made.help or summary
        return made

    def resolve_command(self, ctx: ClickContext, args: list[str]) -> Any:
        """Return the command of a line; the error for an unknown one suggests a similar name."""
        self.commands = dict.fromkeys(self.table())  # type: ignore[assignment]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: ClickContext, formatter: Any) -> None:
        """Write the names and their summaries without building the commands."""
        width = max(map(len, self.table()))
        for heading, commands in self.sections().items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, summary) in commands.items()])

    def shell_complete(self, ctx: ClickContext, incomplete: str) -> list[Any]:
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
        context_settings=_SETTINGS,
    )
    app.callback()(root)
    return app


def group(
    help: str = "", kind: type[LazyGroup] = LazyGroup
) -> Callable[[Callable[[], CommandTable | CommandSections]], Callable[[], Any]]:
    """Turn a function that returns a table of commands, or sections of them, into one that makes their group.

    The table is built when one of the commands is needed. Without a help text the group has the summary in the
    table that it is in.
    """

    def made(table: Callable[[], CommandTable | CommandSections]) -> Any:
        class Group(kind):  # type: ignore[valid-type, misc]
            entries = staticmethod(cache(table))

        return typer.main.get_command(app_of(Group, help))

    return lambda table: partial(made, table)
