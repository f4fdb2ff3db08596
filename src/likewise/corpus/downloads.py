"""Fetching data from the Hugging Face hub: pinned, held against checksums, and put into SentEval's layout by rename."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from likewise.corpus.hub_sources import DATASETS, DataSet, HubFile
from likewise.corpus.unpacking import unpack
from likewise.errors import LikewiseError
from likewise.runs.whole_files import write_text

LOCK = "likewise-data.lock.json"
"""Beside the data: the checksum of every file that was fetched, and when."""

Download = Callable[[HubFile], Path]


class DownloadError(LikewiseError):
    """Data that cannot be fetched or is not what it should be; the message names the file and the cure."""


@dataclass(frozen=True)
class Fetched:
    """What became of one file.

    Attributes:
        file: which one.
        state: "there" (nothing was done), "checked" (against a known checksum) or "recorded" (the first fetch).
        made: the paths that it became.
    """

    file: HubFile
    state: str
    made: tuple[Path, ...]


def data_folder() -> Path:
    """Where data is kept: LIKEWISE_DATA if set (its parent, where it names `senteval` itself), else the cache."""
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
    download: Download | None = None,
) -> list[Fetched]:
    """Fetch a data set into a folder of SentEval's layout; what is there already stays.

    Args:
        name: one of `DATASETS`.
        out: the data folder; `data_folder()` if None.
        files: copies that are on this machine already, by the file's name in the repository ('senteval.tar').
        overwrite: fetch again, and replace what is there.
        download: gives a file's path on this machine; the hub's client by default.

    Raises:
        DownloadError: no such data set; the hub cannot be reached, with what to put where; or a file is not the one
            that is pinned.
    """
    if name not in DATASETS:
        raise DownloadError(f"there is no data set {name!r}; there are {', '.join(DATASETS)}")
    dataset = DATASETS[name]
    folder = Path(out).expanduser() if out is not None else data_folder()
    given = dict(files or {})
    known = {file.path.rpartition("/")[2] for file in dataset.files}
    if unknown := sorted(set(given) - known):
        raise DownloadError(f"{name} is made of {', '.join(sorted(known))}, and not of {', '.join(unknown)}")
    found = []
    for file in dataset.files:
        made = tuple(folder / path for path in file.made)
        if all(path.exists() for path in made) and not overwrite:
            found.append(Fetched(file, "there", made))
            continue
        source = given.get(file.path.rpartition("/")[2])
        if source is not None and not source.is_file():
            raise DownloadError(f"there is no file '{source}'")
        path = source or (download or hub_download(dataset, folder))(file)
        folder.mkdir(parents=True, exist_ok=True)
        state = _check(file, path, folder)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=folder) as work:
            try:
                unpack(file, path, Path(work))
            except ValueError as error:
                raise DownloadError(f"{path}: {error}") from error
            for target, relative in zip(made, file.made, strict=True):
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.is_dir():
                    shutil.rmtree(target)
                (Path(work) / relative).replace(target)
        found.append(Fetched(file, state, made))
    return found


def _check(file: HubFile, path: Path, folder: Path) -> str:
    """Hold a file against what is known of it, and write down its checksum.

    Known is, in this order: the checksum in the table; the one that an earlier fetch wrote down; and the one by which
    the hub's client names a large file in its cache, which is the hub's own.
    """
    with path.open("rb") as raw:
        sha256 = hashlib.file_digest(raw, "sha256").hexdigest()
    lock = read_lock(folder)
    locked = lock.get(file.key, {}).get("sha256")
    stated = path.resolve().name
    for expected, who in (
        (file.sha256, "the table of likewise"),
        (locked, f"{folder / LOCK}, written when it was fetched first"),
        (stated if re.fullmatch(r"[0-9a-f]{64}", stated) else None, "the hub"),
    ):
        if expected and expected != sha256:
            raise DownloadError(
                f"{path}: its SHA-256 is {sha256}, and {who} says {expected}. It is damaged, or not the pinned file of "
                f"{file.repo}: remove it and fetch it again"
            )
    if locked:
        return "checked"
    lock[file.key] = {
        "sha256": sha256,
        "bytes": path.stat().st_size,
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _write_lock(folder, lock)
    return "checked" if file.sha256 else "recorded"


def read_lock(folder: Path) -> dict[str, Any]:
    """The lock file of a data folder: by file, its checksum, size and time; {} where there is none.

    Raises:
        DownloadError: it is no JSON.
    """
    path = folder / LOCK
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DownloadError(
            f"{path}: cannot be read ({error}): mend it, or remove it to record checksums anew"
        ) from None
    return dict(found)


def _write_lock(folder: Path, lock: dict[str, Any]) -> None:
    write_text(folder / LOCK, json.dumps(lock, indent=2, sort_keys=True) + "\n")


def hub_download(dataset: DataSet, folder: Path) -> Download:
    """Fetch by the hub's own client, into its cache: a download that was cut short goes on where it stopped."""

    def download(file: HubFile) -> Path:
        import httpx
        from huggingface_hub import errors, hf_hub_download

        try:
            return Path(
                hf_hub_download(
                    file.repo,
                    file.path,
                    repo_type="dataset",
                    revision=file.revision,
                    endpoint=os.environ.get("HF_ENDPOINT"),
                )
            )
        except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError, errors.FileMetadataError) as error:
            reason = str(error)
        except (errors.OfflineModeIsEnabled, httpx.HTTPError, OSError) as error:
            reason = str(error) or type(error).__name__
        raise DownloadError(explain(dataset, file, folder, reason.strip().partition("\n")[0]))

    return download


def explain(dataset: DataSet, file: HubFile, folder: Path, reason: str) -> str:
    """What to do where the hub cannot be reached: what to fetch elsewhere, and what to put where."""
    urls = [f"  https://huggingface.co/datasets/{f.repo}/resolve/{f.revision}/{f.path}" for f in dataset.files]
    names = " ".join(f"--from {f.path.rpartition('/')[2]}" for f in dataset.files)
    made = [f"  {folder / path}" for f in dataset.files for path in f.made]
    return "\n".join(
        [
            f"{file.path} of {file.repo} could not be fetched ({reason}).",
            "On a machine that reaches the hub, download",
            *urls,
            f"then copy the files here and run: likewise data get {dataset.name} {names}",
            "Or put the data there yourself:",
            *made,
        ]
    )
