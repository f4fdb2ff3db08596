"""The command line: thin commands that parse, call the library and print."""

import os
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import distribution
from typing import Any

import typer

from likewise.cli.groups import ClickContext, CommandSections, LazyGroup, app_of
from likewise.cli.messages import clean_errors
from likewise.version import __version__

# Before any library that reads it is imported: tokenizers would warn of the fork that data loading makes.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

_SECTIONS: CommandSections = {
    "Train and adapt": {
        "train": ("training_commands:train", "Train ArcCSE, SNCSE, GCLSR or another sentence encoder on plain text."),
        "context": ("context:context", "Compute sentence similarity based on contexts, stage by stage."),
        "demo": ("demo:demo", "Run the four systems in a few minutes, and print a table, a search and a page."),
        "adapt": ("training_commands:adapt", "Adapt an encoder to your own text, without labels."),
        "finetune": ("training_commands:finetune", "Train an encoder further on labelled rows."),
    },
    "Use": {
        "encode": ("models:encode", "Encode a text file into a file of vectors."),
        "similarity": ("models:similarity", "Print the cosine of two sentences, from -1 to 1."),
        "export": ("models:export", "Export a model as an ONNX or OpenVINO graph, or for model2vec."),
    },
    "Measure": {
        "evaluate": ("scores:evaluate", "Evaluate a model on similarity, transfer and other tasks."),
        "compare": ("scores:compare", "Train and evaluate methods under one budget."),
    },
    "Text, data and cache": {
        "negate": ("data:negate", "Write the negation of every sentence in a text file."),
        "sections": (
            "data:sections",
            "Draw triplets from articles: a sentence, a sentence of its section, and a sentence of another section.",
        ),
        "data": ("data:data", "Fetch evaluation data and training text from the hub."),
        "cache": ("data:cache", "Show or clear the files that likewise caches to save time."),
    },
}
"""Heading of the help to the verbs of the core; the entry points `likewise.commands` add the verbs of search."""

_COMMANDS_GROUP = "likewise.commands"


class _Root(LazyGroup):
    @staticmethod
    def entries() -> CommandSections:
        """Return the verbs by their headings."""
        return _sections()

    def invoke(self, ctx: ClickContext) -> Any:
        for stream in (sys.stdout, sys.stderr):  # a terminal may not support every character
            with suppress(AttributeError, ValueError, OSError):
                stream.reconfigure(errors="replace")  # type: ignore[union-attr]
        with clean_errors():
            return super().invoke(ctx)


def build_app() -> typer.Typer:
    """Return the command line with all its commands; each is built when it is called."""
    return app_of(
        _Root,
        "Train sentence encoders on plain text without labels, and search your own text.",
        _options,
        completion=True,
    )


@cache
def _sections() -> CommandSections:
    """Return the verbs of the core and, under the same headings, the wings' verbs, which the package registers.

    Only its own entry points are read: to look through all packages would double the time of a help text.
    """
    sections = dict(_SECTIONS)
    for entry in distribution("likewise").entry_points.select(group=_COMMANDS_GROUP):
        for heading, verbs in entry.load().items():
            sections[heading] = {**sections.get(heading, {}), **verbs}
    return sections


def _version(show: bool) -> None:
    if show:
        typer.echo(f"likewise {__version__}")
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Define the options that belong to no command."""


def main() -> None:
    """Run the command line. A closed pipe, as after `head`, is not an error."""
    code, has_left = 0, False
    try:
        try:
            build_app()()
        except SystemExit as end:  # rich and typer leave a broken pipe with exit code 1
            has_left = isinstance(end.__context__, BrokenPipeError)
            code = 0 if has_left else end.code  # type: ignore[assignment]
        sys.stdout.flush()
    except BrokenPipeError:
        has_left = True
    if has_left:  # what is still to be written has no reader
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(code)
