"""The data that `likewise data get` fetches: files on the Hugging Face hub, and their destinations.

Revisions are commits of the repositories, as the hub's own pages name them. A checksum is None where it could not be
learned without the file itself: the first fetch writes it into a lock file of the data folder, and later fetches are
held to that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

_SIMCSE = "princeton-nlp/datasets-for-simcse"
_SIMCSE_REVISION = "e145e8bb659b2aa2669f32ef79cb4cdef6c58fef"
_ALL_NLI = "sentence-transformers/all-nli"
_NLI_REVISION = "323b5a8b4c887a41d9d0041a2262742c902af0cd"


@dataclass(frozen=True)
class HubFile:
    """One file of a dataset repository.

    Attributes:
        revision: the commit, 40 hexadecimal digits.
        megabytes: its size in 10^6 bytes, rounded, as the hub's page says.
        kind: "tar" an archive of which `folders` are taken, "text" a file that is copied, "nli" a Parquet table
            of labelled pairs that is written as SentEval writes SNLI.
        target: its place below the data folder.
        folders: for "tar": the folders taken, wherever they are in the archive.
        sha256: of the file, or None where it is not known.
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
