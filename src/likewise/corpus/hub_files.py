"""The data that `likewise data get` fetches: files on the Hugging Face hub, their destinations, and their unpacking.

Revisions are commits of the repositories, as the hub's own pages name them.
"""

import codecs
import json
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from likewise.errors import LikewiseError


class DownloadError(LikewiseError):
    """Raised if data cannot be fetched or is not as expected; the message names the file and the cure."""


@dataclass(frozen=True)
class HubFile:
    """One file of a dataset repository: an archive, a Parquet table of labelled pairs, or a text that is copied.

    Attributes:
        megabytes: its size in 10^6 bytes, rounded, as the hub's page says.
        made: the files made of it, relative to the data folder; of an archive the folders that are taken, wherever they
            are in it; of a table the first sentences, the second ones and the labels, as SentEval writes SNLI.
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

    @property
    def address(self) -> str:
        """Its place on the hub, below the hub's address."""
        return f"datasets/{self.repo}/resolve/{self.revision}/{self.path}"


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


def _senteval(*folders: str) -> HubFile:
    return _simcse("senteval.tar", 89.8, *(f"senteval/{folder}" for folder in folders))


DATASETS: dict[str, tuple[HubFile, ...]] = {
    "sts": (_senteval("STS", "SICK"),),
    "transfer": (_senteval("MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC"),),
    "wiki1m": (_simcse("wiki1m_for_simcse.txt", 120),),
    "nli": (_nli("train", 69.5), _nli("dev", 1.57), _nli("test", 1.61), _simcse("nli_for_simcse.csv", 49)),
}
"""The files of each data set that `likewise data get` knows."""


def unpack(file: HubFile, path: Path, work: Path) -> None:
    """Write `file.made` below the folder `work`; a `DownloadError` says what is wrong with the file."""
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
    wanted = {target.name: target for target in targets}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts
                top = next((i for i, part in enumerate(parts[:-1]) if part in wanted), None)
                # Links and devices are left out, and so is what would climb out of the folder.
                if top is None or not member.isfile() or ".." in parts or parts[-1].startswith("."):
                    continue
                source: IO[bytes] | None = archive.extractfile(member)
                assert source is not None  # a regular file has content
                target = wanted[parts[top]].joinpath(*parts[top + 1 :])
                target.parent.mkdir(parents=True, exist_ok=True)
                with source, target.open("wb") as out:
                    shutil.copyfileobj(source, out)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DownloadError(f"{path}: it is not a complete archive ({error}); fetch it again") from error
    if empty := [name for name, target in wanted.items() if not target.exists()]:
        raise DownloadError(f"{path}: the archive holds nothing of {', '.join(empty)}; give the right one")


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
            raise DownloadError(f"{path}: row {row}: {label!r} is not a label; there are 0 to {len(names) - 2}")
    for target, column in zip(targets, (first, second, [names[label] for label in labels]), strict=True):
        # One line a sentence: white space of any kind is one blank.
        target.write_text("".join(" ".join(str(cell).split()) + "\n" for cell in column), encoding="utf-8")
