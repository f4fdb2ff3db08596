"""`likewise encode`, `similarity`, `export`, `push`, `negate`, `sections`, `data` and `cache`: use models and text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import typer

from likewise.cli.commands import command_of
from likewise.cli.groups import command, group_of
from likewise.errors import counted

Model = Annotated[str, typer.Argument(help="A model's folder, its hub name, or bundled:minilm.")]


def encode_command() -> Any:
    """Return `likewise encode`."""
    import likewise

    def show(found: Any) -> None:
        typer.echo(f"{found.rows:,} x {found.dimension}, float32", err=True)

    return command_of(
        likewise.encode_file,
        show,
        arguments=("model", "source"),
        defaults={"out": Path("vectors.npy"), "engine": "auto", "precision": "auto"},
        texts={
            "out": "X.npy (a row per line), X.parquet (sentence and embedding), X (a folder of Parquet shards), "
            "X.lance (a Lance table), or '-' (a JSON array per line).",
            "batch_size": "Most sentences in a batch; by default only their tokens are limited.",
        },
    )


def similarity_command() -> Any:
    """Return `likewise similarity`."""

    def similarity(
        model: Model,
        a: Annotated[str, typer.Argument(help="A sentence.")],
        b: Annotated[str, typer.Argument(help="Another sentence.")],
    ) -> None:
        from likewise.inference.deferred import DeferredEncoder

        encoder = DeferredEncoder(model)
        try:  # torch takes seconds to import, and an export of a known model does not need it
            export, prompt = encoder.export(), encoder.facts.prompt()
            first, second = export([prompt + a, prompt + b])
            typer.echo(f"{first @ second:.4f}")
        except LookupError:
            import likewise

            typer.echo(f"{likewise.similarity(a, b, model=encoder.model).item():.4f}")
            sys.stdout.flush()
            encoder.make_export([a, b])

    return command(similarity)


def export_command() -> Any:
    """Return `likewise export`."""
    import likewise
    from likewise.inference.exporting import FORMATS

    def show(paths: Any) -> None:
        for path in paths:
            typer.echo(path)

    return command_of(
        likewise.export,
        show,
        arguments=("model",),
        types={"format": Literal.__getitem__(FORMATS)},
        texts={"format": "The format.", "out": "The folder to write."},
    )


def push_command() -> Any:
    """Return `likewise push`."""
    import likewise

    def show(found: Any) -> None:
        if not found.url:
            for name, size in found.files.items():
                typer.echo(f"{size:>12,}  {name}")
            typer.echo(f"\n{found.card}\ndry run: nothing was sent to {found.repository}")
        else:
            typer.echo(f"{counted(len(found.files), 'file')} sent: {found.url}")

    return command_of(
        likewise.push,
        show,
        arguments=("model", "repository"),
        types={"tasks": Optional[str]},
        defaults={"tasks": None},
        texts={
            "model": "The folder that train, adapt or finetune wrote.",
            "tasks": "Tasks of the table on the card, evaluated on the base and on the model; names with commas.",
        },
    )


def negate_command() -> Any:
    """Return `likewise negate`."""
    from likewise.augment.negation import negate_corpus

    def show(found: Any) -> None:
        share = found.negated / found.total if found.total else 0.0
        typer.echo(f"{found.path}: {found.negated:,} of {counted(found.total, 'sentence')} negated ({share:.1%})")
        for reason, number in found.reasons.most_common():
            typer.echo(f"  not negated, {reason}: {number:,}")
        counts = f"parsed {found.parsed:,}, from the cache {found.cached:,}, from a resumed run {found.resumed:,}"
        typer.echo(f"  {counts}")

    return command_of(
        negate_corpus,
        show,
        arguments=("sources",),
        types={"sources": list[Path]},
        texts={
            "sources": "Text files (plain, .gz, .bz2 or .zst) with one sentence per line; blank lines are skipped.",
            "out": "The JSONL file to write.",
            "model": "The spaCy model that parses.",
            "processes": "Number of processes that parse; 0 for one on each core, where it pays.",
            "batch_size": "Sentences that a process parses, and that are written, at a time.",
            "cache": "Read known negations from the cache, and keep the new ones there.",
        },
        defaults={"processes": 0},
    )


def sections_command() -> Any:
    """Return `likewise sections`."""

    def sections(
        corpus: Annotated[
            list[str], typer.Argument(metavar="IN...", help="Articles (id, title, sections), or a MediaWiki dump.")
        ],
        out: Annotated[Path, typer.Option(help="The CSV file to write: Sentence1, Sentence2, Sentence3.")],
        n: Annotated[int, typer.Option("--n", help="Number of triplets.", min=1)] = 10_000,
        seed: Annotated[int, typer.Option(help="Fixes the draw.", min=0)] = 42,
        skip: Annotated[
            int,
            typer.Option(
                help="Skip the articles of this many triplets: 10000 skips those of the task wiki-sections.", min=0
            ),
        ] = 0,
    ) -> None:
        from likewise.corpus.documents import read_documents
        from likewise.corpus.triplets import section_triplets, write_triplets
        from likewise.runs.job import check_target

        check_target(out, "file")
        written = write_triplets(out, section_triplets(read_documents(corpus), n, seed, skip))
        fewer = f", of {n:,} asked for: there are no more articles with two sections" if written < n else ""
        typer.echo(f"{out}: {counted(written, 'triplet')}{fewer}")

    return command(sections)


def data_group() -> Any:
    """Return `likewise data`."""
    return group_of(
        lambda: {
            "get": (
                _get_command,
                "Fetch a data set at its pinned revision, check it, and put it into SentEval's layout.",
            )
        }
    )


_STATES = {
    "there": "there already",
    "checked": "fetched, its checksum is the known one",
    "recorded": "fetched; its checksum was not known before and is recorded for the next time",
}


def _get_command() -> Any:
    def get(
        name: Annotated[str, typer.Argument(help="sts, transfer, wiki1m or nli.")],
        out: Annotated[
            Optional[Path],
            typer.Option(help="The data folder; without it $LIKEWISE_DATA, then ~/.cache/likewise/data."),
        ] = None,
        files: Annotated[
            Optional[list[Path]],
            typer.Option("--from", help="A file that was downloaded elsewhere, used in place of the hub; repeatable."),
        ] = None,
        overwrite: Annotated[bool, typer.Option("--overwrite", help="Fetch again, and replace what is there.")] = False,
    ) -> None:
        from likewise.corpus.downloads import LOCK, data_folder, get_data
        from likewise.runs.progress import Progress

        folder = out or data_folder()
        given = {path.name: path for path in files or []}
        found = get_data(name, folder, files=given, overwrite=overwrite, progress=Progress())
        for fetched in found:
            typer.echo(f"{fetched.file.path}: {_STATES[fetched.state]}")
            for path in fetched.made:
                typer.echo(f"  {path}")
        if any(fetched.state == "recorded" for fetched in found):
            typer.echo(f"checksums: {folder / LOCK}")
        if folder.resolve() != data_folder().resolve():
            typer.echo(f"evaluate with --data {folder}, or set LIKEWISE_DATA to it")

    return command(get)


def cache_group() -> Any:
    """Return `likewise cache`."""
    return group_of(
        lambda: {
            "show": (lambda: command(_show_cache), "Print where the cache is, and what it holds."),
            "clear": (lambda: command(_clear_cache), "Remove files from the cache: all, or the kinds that are named."),
        },
        help="Show or clear what likewise keeps to save time. Everything in it is made again when it is needed.",
    )


def _show_cache() -> None:
    from likewise.runs.cache import KINDS, cache_folder, kept_in_cache

    typer.echo(cache_folder())
    for kept in kept_in_cache():
        typer.echo(
            f"  {kept.kind:<9}  {kept.bytes / 1e6:>8,.1f} MB  {counted(kept.files, 'file'):>12}  {KINDS[kept.kind]}"
        )


def _clear_cache(
    kinds: Annotated[
        Optional[list[str]], typer.Argument(metavar="[KIND]...", help="What to remove, as `show` names it; or all.")
    ] = None,
) -> None:
    from likewise.runs.cache import clear_cache

    removed = clear_cache(*kinds or ())
    for kept in removed:
        typer.echo(f"removed: {kept.kind}, {counted(kept.files, 'file')}, {kept.bytes / 1e6:,.1f} MB")
    if not removed:
        typer.echo("there was nothing to remove")
