"""The command line: thin commands that parse, call the library and print."""

from __future__ import annotations

import os
from typing import Any

import typer

# Before any library that reads them is imported: tokenizers would warn of the fork that data loading makes.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

VERBS: dict[str, tuple[str, str]] = {
    "adapt": ("likewise.cli.training:adapt_command", "Adapt an encoder to your own text, without labels."),
    "train": ("likewise.cli.training:train_group", "Train a sentence encoder on plain text."),
    "finetune": ("likewise.cli.training:finetune_group", "Train an encoder further on labelled rows."),
    "baseline": ("likewise.cli.training:baseline_group", "Make a model to compare with: averages, whitening, flow."),
    "evaluate": ("likewise.cli.measuring:evaluate_command", "Score a model on similarity, transfer and other tasks."),
    "compare": ("likewise.cli.measuring:compare_command", "Train and evaluate methods under one budget."),
    "analyze": ("likewise.cli.measuring:analyze_group", "See what a model does: similarities, errors."),
    "encode": ("likewise.cli.using:encode_command", "Encode a text file into a file of vectors."),
    "similarity": ("likewise.cli.using:similarity_command", "Print the cosine of two sentences."),
    "export": ("likewise.cli.using:export_command", "Write a model as one ONNX or OpenVINO graph."),
    "index": ("likewise.cli.searching:index_command", "Index files for search, or update an index."),
    "search": ("likewise.cli.searching:search_command", "Search an index by meaning and by words."),
    "serve": ("likewise.cli.searching:serve_command", "Serve models and indexes over HTTP, with OpenAI's API."),
    "negate": ("likewise.cli.using:negate_command", "Write the negation of every sentence of a text file."),
    "sections": ("likewise.cli.using:sections_command", "Draw triplets of sentences from articles."),
    "context": ("likewise.cli.context:context_group", "Sentence similarity based on contexts, stage by stage."),
    "data": ("likewise.cli.using:data_group", "Fetch evaluation data and training text from the hub."),
    "cache": ("likewise.cli.using:cache_group", "Show or clear what likewise keeps to save time."),
    "demo": ("likewise.cli.demo:demo_command", "Train on what the package registry carries, and show what came of it."),
}
"""Verb to the function that makes its command, and its summary."""


def build_app() -> typer.Typer:
    """Return the command line with all its commands; each is built when it is called."""
    from likewise.cli.groups import LazyGroup, Table, app_of
    from likewise.cli.messages import clean_errors

    class Root(LazyGroup):
        def table(self) -> Table:
            return VERBS

        def make_context(self, *args: Any, **kwargs: Any) -> Any:
            with clean_errors():
                return super().make_context(*args, **kwargs)

        def invoke(self, ctx: Any) -> Any:
            with clean_errors():
                return super().invoke(ctx)

    return app_of(Root, "Sentence encoders from plain text, no labels needed.", _root)


def _version(show: bool) -> None:
    if show:
        from likewise.version import __version__

        typer.echo(f"likewise {__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Define the options that belong to no command."""


def main() -> None:
    """Run the command line."""
    build_app()()
