"""The data that `likewise data get` fetches: files on the Hugging Face hub, their destinations, and their unpacking.

Revisions are commits of the repositories, as the hub's own pages name them. A checksum is None where it could not be
learned without the file itself: the first fetch writes it into a lock file of the data folder, and later fetches are
held to that.
"""

import codecs
import json
import shutil
import tarfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

_SIMCSE = "princeton-nlp/datasets-for-simcse"
_SIMCSE_REVISION = "e145e8bb659b2aa2669f32ef79cb4cdef6c58fef"
_ALL_NLI = "sentence-transformers/all-nli"
_NLI_REVISION = "323b5a8b4c887a41d9d0041a2262742c902af0cd"


@dataclass(frozen=True)
class HubFile:
    """One file of a dataset repository.

    Attributes:
        megabytes: its size in 10^6 bytes, rounded, as the hub's page says.
        kind: "tar" an archive of which `folders` are taken, "text" a file that is copied, "nli" a Parquet table
            of labelled pairs that is written as SentEval writes SNLI.
        folders: for "tar": the folders taken, wherever they are in the archive.
    """

    repo: str
    revision: str
    path: str
    megabytes: float
    kind: Literal["tar", "text", "nli"]
    target: str
    folders: tuple[str, ...] = ()
    sha256: str | None = None

    @property
    def key(self) -> str:
        """Its name in the lock file."""
        return f"{self.repo}@{self.revision}/{self.path}"

    @property
    def name(self) -> str:
        """The file's name without folders."""
        return self.path.rpartition("/")[2]

    @property
    def made(self) -> tuple[str, ...]:
        """The files and folders made of it, relative to the data folder."""
        if self.kind == "tar":
            return tuple(f"{self.target}/{folder}" for folder in self.folders)
        if self.kind == "nli":
            part = self.name.partition("-")[0]  # train, dev or test
            return tuple(f"{self.target}/{name}.{part}" for name in ("s1", "s2", "labels"))
        return (self.target,)


def _simcse(path: str, megabytes: float, *folders: str) -> HubFile:
    kind, target = ("tar", "senteval") if folders else ("text", path)
    return HubFile(_SIMCSE, _SIMCSE_REVISION, path, megabytes, kind, target, folders)  # type: ignore[arg-type]


def _nli(part: str, megabytes: float) -> HubFile:
    path = f"pair-class/{part}-00000-of-00001.parquet"
    return HubFile(_ALL_NLI, _NLI_REVISION, path, megabytes, "nli", "senteval/AllNLI")


DATASETS: dict[str, tuple[HubFile, ...]] = {
    "sts": (_simcse("senteval.tar", 89.8, "STS", "SICK"),),
    "transfer": (_simcse("senteval.tar", 89.8, "MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC"),),
    "wiki1m": (_simcse("wiki1m_for_simcse.txt", 120),),
    "nli": (_nli("train", 69.5), _nli("dev", 1.57), _nli("test", 1.61), _simcse("nli_for_simcse.csv", 49)),
}
"""The files of each data set that `likewise data get` knows."""

NLI_LABELS = ("entailment", "neutral", "contradiction")
"""Names of the label numbers of a Parquet table, where the table does not say so itself."""


def unpack(file: HubFile, path: Path, work: Path) -> None:
    """Write `file.made` below the folder `work`."""
    if file.kind == "tar":
        _from_tar(file, path, work)
    elif file.kind == "nli":
        _from_parquet(file, path, work)
    else:
        _check_text(path)
        shutil.copyfile(path, work / file.target)


def _check_text(path: Path) -> None:
    """Reject an error page or a file that is not UTF-8 text, judging by its first megabyte."""
    with path.open("rb") as raw:
        head = raw.read(1 << 20)
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text ({error.reason}); fetch it again") from error
    if not text.strip() or "\0" in text or text.lstrip()[:9].lower().startswith(("<!doctype", "<html")):
        raise ValueError("it is not plain text; fetch it again")


def _from_tar(file: HubFile, path: Path, work: Path) -> None:
    counts = dict.fromkeys(file.folders, 0)
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts
                top = next((i for i, part in enumerate(parts[:-1]) if part in counts), None)
                # Links and devices are left out, and so is what would climb out of the folder.
                if top is None or not member.isfile() or ".." in parts or parts[-1].startswith("."):
                    continue
                source: IO[bytes] | None = archive.extractfile(member)
                assert source is not None  # a regular file has content
                target = work / file.target / Path(*parts[top:])
                target.parent.mkdir(parents=True, exist_ok=True)
                with source, target.open("wb") as out:
                    shutil.copyfileobj(source, out)
                counts[parts[top]] += 1
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ValueError(f"it is not a complete archive ({error}); fetch it again") from error
    if empty := [folder for folder, count in counts.items() if not count]:
        raise ValueError(f"the archive holds nothing of {', '.join(empty)}; is it the right one?")


def _from_parquet(file: HubFile, path: Path, work: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
        columns = [table.column(name).to_pylist() for name in ("premise", "hypothesis", "label")]
    except (pyarrow.ArrowException, KeyError, OSError) as error:
        raise ValueError(f"it is not a table of premise, hypothesis and label ({error}); fetch it again") from error
    names = _label_names(table)
    targets = [work / made for made in file.made]
    targets[0].parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        first, second, labels = (stack.enter_context(target.open("w", encoding="utf-8")) for target in targets)
        for row, (premise, hypothesis, label) in enumerate(zip(*columns, strict=True)):
            if label is None or not -1 <= label < len(names):
                raise ValueError(f"row {row}: {label!r} is not a label; there are 0 to {len(names) - 1}")
            # One line a sentence: white space of any kind is one blank.
            first.write(" ".join(str(premise).split()) + "\n")
            second.write(" ".join(str(hypothesis).split()) + "\n")
            labels.write((names[label] if label >= 0 else "-") + "\n")


def _label_names(table: Any) -> tuple[str, ...]:
    """Return the names of the labels, from the metadata of the datasets library in the table."""
    kept = (table.schema.metadata or {}).get(b"huggingface")
    if not kept:
        return NLI_LABELS
    feature = json.loads(kept).get("info", {}).get("features", {}).get("label", {})
    return tuple(feature.get("names") or NLI_LABELS)
