"""The command line: thin commands that parse, call the library and print."""

import os
import sys
from typing import Any

import typer

# Before any library that reads them is imported: tokenizers would warn of the fork that data loading makes.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

_SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Train and adapt": {
        "adapt": ("training:adapt_command", "Adapt an encoder to your own text, without labels."),
        "train": ("training:train_group", "Train a sentence encoder on plain text."),
        "finetune": ("training:finetune_group", "Train an encoder further on labelled rows."),
        "baseline": ("training:baseline_group", "Make a model to compare with: averages, whitening, flow."),
        "demo": ("demo:demo_command", "Adapt a model to the CWE list of software weaknesses, and search it."),
    },
    "Use": {
        "encode": ("using:encode_command", "Encode a text file into a file of vectors."),
        "similarity": ("using:similarity_command", "Print the cosine of two sentences, from -1 to 1."),
        "index": ("searching:index_command", "Index files for search, or update an index."),
        "search": ("searching:search_command", "Search an index by meaning and by words."),
        "serve": ("searching:serve_command", "Serve models and indexes over HTTP, with OpenAI's API."),
        "export": ("using:export_command", "Export a model as an ONNX or OpenVINO graph, or for model2vec."),
        "push": ("using:push_command", "Push a model to a model hub, with its scores and those of its base."),
    },
    "Measure": {
        "evaluate": ("measuring:evaluate_command", "Score a model on similarity, transfer and other tasks."),
        "compare": ("measuring:compare_command", "Train and evaluate methods under one budget."),
        "analyze": ("measuring:analyze_group", "See what a model does: similarities, errors."),
    },
    "Contexts": {
        "context": ("context:context_group", "Sentence similarity based on contexts, stage by stage."),
    },
    "Text, data and cache": {
        "negate": ("using:negate_command", "Write the negation of every sentence of a text file."),
        "sections": (
            "using:sections_command",
            "Draw triplets from articles: a sentence, one of its section, and one of another.",
        ),
        "data": ("using:data_group", "Fetch evaluation data and training text from the hub."),
        "cache": ("using:cache_group", "Show or clear what likewise keeps to save time."),
    },
}
"""Heading of the help to its verbs; a verb to the function that makes its command, and its summary."""

_VERBS = {
    verb: (f"likewise.cli.{function}", summary)
    for verbs in _SECTIONS.values()
    for verb, (function, summary) in verbs.items()
}
"""Verb to the function that makes its command, and its summary."""


def build_app() -> typer.Typer:
    """Return the command line with all its commands; each is built when it is called."""
    from likewise.cli.groups import CommandTable, LazyGroup, app_of
    from likewise.cli.messages import clean_errors

    class Root(LazyGroup):
        def table(self) -> CommandTable:
            return _VERBS

        def sections(self) -> dict[str, list[str]]:
            return {heading: list(verbs) for heading, verbs in _SECTIONS.items()}

        def make_context(self, *args: Any, **kwargs: Any) -> Any:
            with clean_errors():
                return super().make_context(*args, **kwargs)

        def invoke(self, ctx: Any) -> Any:
            with clean_errors():
                return super().invoke(ctx)

    return app_of(Root, "Sentence encoders from plain text, no labels needed.", _root, completion=True)


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
    from likewise.cli.stand_ins import avoid_slow_imports

    avoid_slow_imports(sys.argv[1:])
    build_app()()
