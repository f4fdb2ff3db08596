"""Downloads from the Hugging Face hub: pinned, checked, and arranged atomically in SentEval's layout."""

import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from likewise.corpus.hub_files import DATASETS, DownloadError, HubFile, unpack
from likewise.errors import first_line
from likewise.runs.progress import Progress

HUB = "https://huggingface.co"
SIZE_TOLERANCE = 0.05
"""Largest difference from the known size of a file, which is rounded, as a share of it."""


def data_folder() -> Path:
    """Return the data folder: LIKEWISE_DATA if set (its parent, if it names `senteval` itself), or the cache."""
    named = os.environ.get("LIKEWISE_DATA")
    if not named:
        return Path.home() / ".cache" / "likewise" / "data"
    folder = Path(named).expanduser()
    return folder.parent if folder.name == "senteval" else folder


def get_data(
    name: str,
    out: str | os.PathLike[str] | None = None,
    *,
    files: dict[str, Path] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[HubFile, str]:
    """Fetch a data set into a folder of SentEval's layout; files that are already there are kept.

    The hub's files stay in its cache, under their pinned commit.

    Args:
        name: one of `DATASETS`.
        out: the data folder; `data_folder()` if None.
        files: copies of files of the hub, by their names there, that are taken in place of a download.
        progress: nothing is shown if it is None or quiet.

    Returns:
        For each file "there" (nothing was done), "checked" (fetched, with the checksum that the hub states), "fetched"
        (the hub states none), or "copied".

    Raises:
        DownloadError: there is no such data set, or a file cannot be fetched or is not as expected.
    """
    if name not in DATASETS:
        raise DownloadError(f"there is no data set {name!r}; there are {', '.join(DATASETS)}")
    folder = Path(out).expanduser() if out is not None else data_folder()
    copies = files or {}
    known = {file.name for file in DATASETS[name]}
    if unknown := sorted(set(copies) - known):
        raise DownloadError(f"{name} is made of {', '.join(sorted(known))}, and not of {', '.join(unknown)}")
    states = {}
    for file in DATASETS[name]:
        if all((folder / path).exists() for path in file.made) and not overwrite:
            states[file] = "there"
            continue
        if (copy := copies.get(file.name)) is None:
            path, states[file] = _from_hub(name, file, folder, progress or Progress(quiet=True))
        elif copy.is_file():
            path, states[file] = copy, "copied"
        else:
            raise DownloadError(f"there is no file '{copy}'")
        try:
            _check_size(file, path)
            _put(file, path, folder)
        except DownloadError:
            if copy is None:
                path.resolve().unlink()  # the cache keeps no file that was refused
                path.unlink(missing_ok=True)
            raise
    return states


def _from_hub(name: str, file: HubFile, folder: Path, progress: Progress) -> tuple[Path, str]:
    """Fetch a file into the hub's cache, unless it is there; return it, and whether its checksum is known."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    were_disabled = are_progress_bars_disabled()
    if progress.quiet:
        disable_progress_bars()
    try:
        endpoint = os.environ.get("HF_ENDPOINT") or HUB
        path = Path(
            hf_hub_download(file.repo, file.path, repo_type="dataset", revision=file.revision, endpoint=endpoint)
        )
    except Exception as error:  # no answer, or one of failure: releases of the hub's client use different libraries
        raise DownloadError(_explained(name, file, folder, first_line(error))) from error
    finally:
        if progress.quiet and not were_disabled:
            enable_progress_bars()
    stated = path.resolve().name  # in the hub's cache a file is called by its etag
    if not re.fullmatch(r"[0-9a-f]{64}", stated):
        return path, "fetched"
    with path.open("rb") as raw:
        sha256 = hashlib.file_digest(raw, "sha256").hexdigest()
    if sha256 != stated:
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        raise DownloadError(f"{path}: its SHA-256 is {sha256}, and the hub states {stated}: fetch it again")
    return path, "checked"


def _explained(name: str, file: HubFile, folder: Path, reason: str) -> str:
    """Return the message for an unreachable hub: the files to download by hand, and where to put them."""
    files = DATASETS[name]
    copies = " ".join(f"--from {hub_file.name}" for hub_file in files)
    return "\n".join(
        [
            f"{file.path} of {file.repo} could not be fetched ({reason}).",
            "On a machine that reaches the hub, download",
            *(f"  {HUB}/{hub_file.address}" for hub_file in files),
            f"then copy the files here and run: likewise data get {name} {copies}",
            "Or put the data there yourself:",
            *(f"  {folder / path}" for hub_file in files for path in hub_file.made),
        ]
    )


def _check_size(file: HubFile, path: Path) -> None:
    megabytes = path.stat().st_size / 1e6
    if abs(megabytes - file.megabytes) > SIZE_TOLERANCE * file.megabytes:
        raise DownloadError(
            f"{path}: it has {megabytes:.3g} MB instead of about {file.megabytes:g}. It is damaged, or not the pinned "
            f"file of {file.repo}: remove it and fetch it again"
        )


def _put(file: HubFile, path: Path, folder: Path) -> None:
    """Unpack a file next to its destination, and move the complete result there."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=folder) as work:
        unpack(file, path, Path(work))
        for made in file.made:
            target = folder / made
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_dir():
                shutil.rmtree(target)
            (Path(work) / made).replace(target)
