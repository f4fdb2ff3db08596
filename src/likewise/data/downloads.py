"""Downloads from the Hugging Face hub: pinned, checked, and arranged atomically in SentEval's layout.

Revisions are commits of the repositories, as the hub's own pages name them.
"""

import codecs
import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from likewise.errors import LikewiseError, first_line
from likewise.runs.cache import data_folder
from likewise.runs.progress import Progress


class DownloadError(LikewiseError):
    """Raised if data cannot be fetched or is not as expected; the message names the file and the cure."""


@dataclass(frozen=True)
class HubFile:
    """One file of a dataset repository: an archive, a Parquet table of labeled pairs, or a text that is copied.

    Attributes:
        megabytes: Rounded size in 10^6 bytes, from the hub's page.
        made: Files built from it, relative to the data folder: the extracted folders of an archive; or the first
            sentences, second sentences and labels of a table, as in SentEval's SNLI.
    """

    repo: str
    revision: str
    path: str
    megabytes: float
    made: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file's name without folders."""
        return self.path.rpartition("/")[2]


def _simcse(path: str, megabytes: float, *made: str) -> HubFile:
    return HubFile(
        "princeton-nlp/datasets-for-simcse",
        "e145e8bb659b2aa2669f32ef79cb4cdef6c58fef",
        path,
        megabytes,
        made or (path,),
    )


def _nli(part: str, megabytes: float) -> HubFile:
    path = f"pair-class/{part}-00000-of-00001.parquet"
    made = tuple(f"senteval/AllNLI/{name}.{part}" for name in ("s1", "s2", "labels"))
    revision = "323b5a8b4c887a41d9d0041a2262742c902af0cd"
    return HubFile("sentence-transformers/all-nli", revision, path, megabytes, made)


DATASETS: dict[str, tuple[HubFile, ...]] = {
    "sts": (_simcse("senteval.tar", 89.8, "senteval/STS", "senteval/SICK"),),
    "transfer": (
        _simcse("senteval.tar", 89.8, *(f"senteval/{name}" for name in "MR CR SUBJ MPQA SST TREC MRPC".split())),
    ),
    "wiki1m": (_simcse("wiki1m_for_simcse.txt", 120),),
    "nli": (_nli("train", 69.5), _nli("dev", 1.57), _nli("test", 1.61), _simcse("nli_for_simcse.csv", 49)),
}
"""The files of each data set that `likewise data get` knows."""


def unpack(file: HubFile, path: Path, work: Path) -> None:
    """Write `file.made` below the folder `work`; a `DownloadError` names the fault of the file."""
    targets = [work / made for made in file.made]
    targets[0].parent.mkdir(parents=True, exist_ok=True)
    if file.name.endswith(".tar"):
        _from_tar(path, targets)
    elif file.name.endswith(".parquet"):
        _from_parquet(path, targets)
    else:
        _check_text(path)
        shutil.copyfile(path, targets[0])


def _check_text(path: Path) -> None:
    """Reject an error page or a file that is not UTF-8 text, judging by its first megabyte."""
    with path.open("rb") as raw:
        head = raw.read(1 << 20)
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        raise DownloadError(f"{path}: it is not UTF-8 text ({error.reason}); fetch it again") from error
    if not text.strip() or "\0" in text or text.lstrip()[:9].lower().startswith(("<!doctype", "<html")):
        raise DownloadError(f"{path}: it is not plain text; fetch it again")


def _from_tar(path: Path, targets: list[Path]) -> None:
    by_name = {target.name: target for target in targets}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts
                top = next((i for i, part in enumerate(parts[:-1]) if part in by_name), None)
                # Links and devices are skipped, and so is what would climb out of the folder.
                if top is None or not member.isfile() or ".." in parts or parts[-1].startswith("."):
                    continue
                source: IO[bytes] | None = archive.extractfile(member)
                assert source is not None  # a regular file has content
                target = by_name[parts[top]].joinpath(*parts[top + 1 :])
                target.parent.mkdir(parents=True, exist_ok=True)
                with source, target.open("wb") as out:
                    shutil.copyfileobj(source, out)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DownloadError(f"{path}: it is not a complete archive ({error}); fetch it again") from error
    if empty := [name for name, target in by_name.items() if not target.exists()]:
        raise DownloadError(f"{path}: the archive contains no {', '.join(empty)}; give the right one")


def _from_parquet(path: Path, targets: list[Path]) -> None:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
        first, second, labels = (table.column(name).to_pylist() for name in ("premise", "hypothesis", "label"))
    except (pyarrow.ArrowException, KeyError, OSError) as error:
        raise DownloadError(
            f"{path}: it is not a table of premise, hypothesis and label ({error}); fetch it again"
        ) from error
    # The names are in what the datasets library adds to a table; these are their order in the table that is pinned.
    facts = json.loads((table.schema.metadata or {}).get(b"huggingface", "{}"))
    feature = facts.get("info", {}).get("features", {}).get("label", {})
    names = [*(feature.get("names") or ("entailment", "neutral", "contradiction")), "-"]  # -1: no label
    for row, label in enumerate(labels):
        if label is None or not -1 <= label < len(names) - 1:
            raise DownloadError(f"{path}:{row + 1}: {label!r} is not a label; labels are 0 to {len(names) - 2}")
    for target, column in zip(targets, (first, second, [names[label] for label in labels]), strict=True):
        # One line a sentence: white space of any kind is one blank.
        target.write_text("".join(" ".join(str(cell).split()) + "\n" for cell in column), encoding="utf-8")


HUB = "https://huggingface.co"
SIZE_TOLERANCE = 0.05
"""Largest difference from the known size of a file, which is rounded, as a share of it."""


def get_data(
    name: str,
    out: str | os.PathLike[str] | None = None,
    *,
    files: dict[str, Path] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[HubFile, str]:
    """Fetch a data set into a folder of SentEval's layout; existing files are not replaced.

    The files of the hub remain in its cache, under their pinned commit.

    Args:
        name: Name in `DATASETS`.
        out: Path to the data folder; by default `data_folder()`.
        files: Copies of files of the hub, by their names there, that are used instead of a download.
        progress: Progress of the downloads; None shows nothing.

    Returns:
        For each file "there" (nothing was done), "checked" (fetched, with the checksum that the hub states), "fetched"
        (the hub states none), or "copied".

    Raises:
        DownloadError: If there is no such data set, or a file cannot be fetched or is not as expected.
    """
    if name not in DATASETS:
        raise DownloadError(f"there is no data set {name!r}; choose one of {', '.join(DATASETS)}")
    folder = Path(out).expanduser() if out is not None else data_folder()
    copies = files or {}
    known = {file.name for file in DATASETS[name]}
    if unknown := sorted(set(copies) - known):
        raise DownloadError(
            f"the data set {name} has no file {', '.join(unknown)}; its files are {', '.join(sorted(known))}"
        )
    states = {}
    for file in DATASETS[name]:
        if all((folder / path).exists() for path in file.made) and not overwrite:
            states[file] = "there"
            continue
        copy = copies.get(file.name)
        if copy is not None and not copy.is_file():
            raise DownloadError(f"there is no file '{copy}'")
        path = copy or _from_hub(name, file, folder, progress or Progress(quiet=True))
        try:
            states[file] = "copied" if copy else _check_sum(path)
            _check_size(file, path)
            _put(file, path, folder)
        except DownloadError:
            if copy is None:
                path.resolve().unlink()  # the cache keeps no file that was refused
                path.unlink(missing_ok=True)
            raise
    return states


def _from_hub(name: str, file: HubFile, folder: Path, progress: Progress) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    were_disabled = are_progress_bars_disabled()
    if progress.quiet:
        disable_progress_bars()
    try:
        endpoint = os.environ.get("HF_ENDPOINT") or HUB
        return Path(
            hf_hub_download(file.repo, file.path, repo_type="dataset", revision=file.revision, endpoint=endpoint)
        )
    except Exception as error:  # no answer, or one of failure: releases of the hub's client use different libraries
        raise DownloadError(_explained(name, file, folder, first_line(error))) from error
    finally:
        if progress.quiet and not were_disabled:
            enable_progress_bars()


def _check_sum(path: Path) -> str:
    stated = path.resolve().name  # in the hub's cache a file is called by its etag
    if not re.fullmatch(r"[0-9a-f]{64}", stated):
        return "fetched"
    with path.open("rb") as raw:
        sha256 = hashlib.file_digest(raw, "sha256").hexdigest()
    if sha256 != stated:
        raise DownloadError(f"{path}: its SHA-256 is {sha256}, and the hub states {stated}: fetch it again")
    return "checked"


def _explained(name: str, file: HubFile, folder: Path, reason: str) -> str:
    """Return the message for an unreachable hub: the files to download by hand, and where to put them."""
    files = DATASETS[name]
    copies = " ".join(f"--from {known.name}" for known in files)
    return "\n".join(
        [
            f"{file.path} of {file.repo} cannot be fetched ({reason}).",
            "On a machine with access to the hub, download",
            *(f"  {HUB}/datasets/{known.repo}/resolve/{known.revision}/{known.path}" for known in files),
            f"Copy the files here, then run: likewise data get {name} {copies}",
            "Or place the data there yourself:",
            *(f"  {folder / path}" for known in files for path in known.made),
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
