"""Downloads from the Hugging Face hub: pinned, checked, and arranged atomically in SentEval's layout."""

import hashlib
import json
import os
import re
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from likewise.corpus.hub_files import DATASETS, DownloadError, HubFile, unpack
from likewise.errors import first_line
from likewise.runs.cache import cached
from likewise.runs.progress import Bar, Progress
from likewise.runs.whole_files import write_json

HUB = "https://huggingface.co"
LOCK = "likewise-data.lock.json"
"""The file in the data folder with the checksum, size and time of every file that was fetched."""

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

    Args:
        name: one of `DATASETS`.
        out: the data folder; `data_folder()` if None.
        files: copies of files of the hub, by their names there, that are taken in place of a download.

    Returns:
        For each file "there" (nothing was done), "checked" (against a known checksum) or "recorded" (the first fetch).
    """
    if name not in DATASETS:
        raise DownloadError(f"there is no data set {name!r}; there are {', '.join(DATASETS)}")
    folder = Path(out).expanduser() if out is not None else data_folder()
    given = files or {}
    known = {file.name for file in DATASETS[name]}
    if unknown := sorted(set(given) - known):
        raise DownloadError(f"{name} is made of {', '.join(sorted(known))}, and not of {', '.join(unknown)}")
    found = {}
    for file in DATASETS[name]:
        if all((folder / path).exists() for path in file.made) and not overwrite:
            found[file] = "there"
            continue
        lock = read_lock(folder)
        checksum = lock.get(file.key, {}).get("sha256")
        path = given.get(file.name)
        if path is None:
            path = _from_hub(name, file, folder, checksum, progress or Progress(quiet=True))
        elif not path.is_file():
            raise DownloadError(f"there is no file '{path}'")
        try:
            sha256 = _check(file, path, checksum, folder)
            _put(file, path, folder)
        except DownloadError:
            if path != given.get(file.name):
                path.unlink()  # the cache keeps no file that was refused
            raise
        if not checksum:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            lock[file.key] = {"sha256": sha256, "bytes": path.stat().st_size, "fetched": now}
            write_json(folder / LOCK, dict(sorted(lock.items())))
        found[file] = "checked" if checksum else "recorded"
    return found


def read_lock(folder: Path) -> dict[str, Any]:
    """Return the lock file of a data folder: by file, its checksum, size and time; {} if there is none."""
    path = folder / LOCK
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        raise DownloadError(
            f"{path}: cannot be read ({error}): mend it, or remove it to record new checksums"
        ) from None


class _Shown:
    """An adapter of a progress bar to the interface of pooch."""

    def __init__(self, bar: Bar) -> None:
        self.bar, self.total = bar, 0

    def update(self, count: int) -> None:
        self.bar.update(min(self.bar.done + count, self.total or self.bar.done + count), self.total or None)

    def reset(self) -> None:
        self.bar.update(0)

    def close(self) -> None:
        """Leave the bar to its `with` block."""


def _from_hub(name: str, file: HubFile, folder: Path, checksum: str | None, progress: Progress) -> Path:
    """Fetch a file into the cache, unless it is already there."""
    import pooch

    address = f"{os.environ.get('HF_ENDPOINT') or HUB}/{file.address}"
    pooch.get_logger().setLevel("WARNING")

    def fetch(folder: Path) -> None:
        with progress.bar(f"fetching {file.name}", unit="bytes") as bar:
            downloader = pooch.HTTPDownloader(progressbar=_Shown(bar), chunk_size=1 << 20)
            known = checksum or _stated_by_hub(address)
            pooch.retrieve(address, known and f"sha256:{known}", file.name, folder, downloader=downloader)

    try:
        return cached("downloads", [file.repo, file.revision, file.name], fetch) / file.name
    except (OSError, ValueError) as error:  # no answer, an answer of failure, or another checksum
        raise DownloadError(_explained(name, file, folder, first_line(error))) from error


def _stated_by_hub(address: str) -> str | None:
    """Return the SHA-256 that the hub gives for a large file, None if it gives none."""
    import requests  # a dependency of pooch

    headers = requests.head(address, timeout=30, allow_redirects=False).headers
    stated = headers.get("X-Linked-Etag", "").strip('"')
    return stated if re.fullmatch(r"[0-9a-f]{64}", stated) else None


def _explained(name: str, file: HubFile, folder: Path, reason: str) -> str:
    """Return the message for an unreachable hub: the files to download by hand, and where to put them."""
    files = DATASETS[name]
    copies = " ".join(f"--from {one.name}" for one in files)
    return "\n".join(
        [
            f"{file.path} of {file.repo} could not be fetched ({reason}).",
            "On a machine that reaches the hub, download",
            *(f"  {HUB}/{one.address}" for one in files),
            f"then copy the files here and run: likewise data get {name} {copies}",
            "Or put the data there yourself:",
            *(f"  {folder / path}" for one in files for path in one.made),
        ]
    )


def _check(file: HubFile, path: Path, checksum: str | None, folder: Path) -> str:
    """Check a file against the known SHA-256, or against the known size, and return its SHA-256."""
    with path.open("rb") as raw:
        sha256 = hashlib.file_digest(raw, "sha256").hexdigest()
    megabytes = path.stat().st_size / 1e6
    if checksum and checksum != sha256:
        fault = f"its SHA-256 is {sha256}, and {folder / LOCK}, written when it was fetched first, says {checksum}"
    elif not checksum and abs(megabytes - file.megabytes) > SIZE_TOLERANCE * file.megabytes:
        fault = f"it has {megabytes:.3g} MB instead of about {file.megabytes:g}"
    else:
        return sha256
    raise DownloadError(
        f"{path}: {fault}. It is damaged, or not the pinned file of {file.repo}: remove it and fetch it again"
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
