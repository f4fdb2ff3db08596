"""`likewise data get NAME`: fetch evaluation data or training text from the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from likewise.cli.messages import clean_errors

data_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Fetch evaluation data and training text from the hub."
)

_STATES = {
    "there": "there already",
    "checked": "fetched, its checksum is the known one",
    "recorded": "fetched; its checksum was not known before and is written down for the next time",
}


@data_app.callback()
def _data() -> None:
    """Fetch evaluation data and training text from the hub."""


@data_app.command("get")
@clean_errors
def get(
    name: Annotated[str, typer.Argument(help="sts, transfer, wiki1m or nli.")],
    out: Annotated[
        Optional[Path],
        typer.Option(help="The data folder; without it $LIKEWISE_DATA, then ~/.cache/likewise/data."),
    ] = None,
    files: Annotated[
        Optional[list[Path]],
        typer.Option("--from", help="A file that was downloaded elsewhere, in the place of the hub; may be repeated."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Fetch again, and replace what is there.")] = False,
) -> None:
    """Fetch a data set at its pinned revision, check it, and put it into SentEval's layout."""
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
