"""Commands whose options come from a dataclass: an option is written once, and read when its command is called."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from likewise.runs.options import Options

Param = inspect.Parameter


def param(name: str, kind: Any, default: Any, text: str, *names: str, panel: str | None = None) -> Param:
    """A parameter of a command; `names` where the option is called otherwise than by default."""
    info = typer.Option(*names, help=text, rich_help_panel=panel, show_default=default is not None)
    return Param(name, Param.KEYWORD_ONLY, default=default, annotation=typing.Annotated[kind, info])


AGAIN = (
    param("resume", bool, False, "Go on from the last checkpoint in --out.", "--resume"),
    param("overwrite", bool, False, "Replace the run that lies in --out.", "--overwrite"),
    param("keep_checkpoints", bool, False, "Keep the checkpoints of a finished run.", "--keep-checkpoints"),
    param("quiet", bool, False, "Print nothing but errors.", "--quiet"),
)
"""What every training command has: what to do with a folder that is not empty, and how much to say."""


def options_of(kind: type[Options], panel: str) -> list[Param]:
    """The fields of an options class as command line parameters; unset means the preset's value."""
    # Optional[...] and not `| None`: typer reads these annotations at run time.
    return [
        param(name, Optional[item.annotation], None, item.description or "", panel=panel)
        for name, item in kind.model_fields.items()
    ]


def command(run: Callable[[dict[str, Any]], None], params: Sequence[Param], doc: str) -> Callable[..., None]:
    """A function with these parameters, for typer, that hands what was given to `run`."""

    def given_to(**given: Any) -> None:
        run(given)

    given_to.__doc__ = doc
    given_to.__signature__ = inspect.Signature(list(params))  # type: ignore[attr-defined]
    given_to.__annotations__ = {one.name: one.annotation for one in params}
    return given_to


def loaded_group(load: Callable[[], dict[str, tuple[Callable[..., None], str]]]) -> type[TyperGroup]:
    """A group that makes its commands when it is called: making them imports torch.

    Args:
        load: gives each command's function and its summary, by name.
    """

    class Group(TyperGroup):
        def _load(self) -> None:
            if self.commands:
                return
            for name, (function, summary) in load().items():
                app = typer.Typer(add_completion=False, rich_markup_mode=None)
                app.command(name, short_help=summary)(function)
                made = typer.main.get_command(app)
                made.name = name
                self.commands[name] = made

        def list_commands(self, ctx: Any) -> list[str]:
            self._load()
            return list(self.commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            self._load()
            return super().get_command(ctx, cmd_name)

    return Group


def loaded_command(load: Callable[[], Callable[..., None]]) -> type[typer.core.TyperCommand]:
    """A command that takes its parameters from a function which is made when it is called, as in `loaded_group`."""

    class Command(typer.core.TyperCommand):
        def _load(self) -> None:
            if getattr(self, "_made", False):
                return
            app = typer.Typer(add_completion=False, rich_markup_mode=None)
            app.command()(load())
            made: Any = typer.main.get_command(app)
            self.params, self.callback, self.help = made.params, made.callback, made.help
            self._made = True

        def get_params(self, ctx: Any) -> Any:
            self._load()
            return super().get_params(ctx)

        def format_help_text(self, ctx: Any, formatter: Any) -> None:
            self._load()
            super().format_help_text(ctx, formatter)

    return Command
