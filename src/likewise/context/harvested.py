"""A harvest as training data: its shards are read and checked, and its scores become targets."""

from __future__ import annotations

import hashlib
import itertools
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from likewise.context.stage_options import Rule
from likewise.context.workspace import ContextError
from likewise.errors import counted, unread
from likewise.runs.whole_files import Record

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class ScoredPairs:
    """The pairs of one split: `table` has the columns sentence1, sentence2 and score."""

    table: pa.Table

    def __len__(self) -> int:
        return len(self.table)

    @property
    def scores(self) -> np.ndarray:
        """The scores, (P,) float64."""
        return self.table["score"].to_numpy()

    def texts(self) -> tuple[list[str], list[str]]:
        """Return the first and the second sentences."""
        return self.table["sentence1"].to_pylist(), self.table["sentence2"].to_pylist()

    def sample(self, most: int) -> ScoredPairs:
        """Return `most` pairs, always the same ones and in their order, or all if there are fewer."""
        rows = np.sort(np.random.default_rng(0).permutation(len(self))[:most])
        return ScoredPairs(self.table.take(rows))


@dataclass(frozen=True)
class Harvest:
    """A harvest in memory: its splits by name, and its files with their SHA-256."""

    splits: dict[str, ScoredPairs]
    sources: tuple[str, ...]
    sha256: str

    def __str__(self) -> str:
        counts = ", ".join(f"{len(pairs):,} {name}" for name, pairs in self.splits.items())
        return (
            f"{counted(sum(map(len, self.splits.values())), 'scored pair')} in {counted(len(self.sources), 'shard')} "
            f"({counts})"
        )

    def record(self) -> Record:
        """Return the facts for the record of a run."""
        return {
            "sources": list(self.sources),
            "sentences": len(self.splits["train"]),
            "unit": "harvested pairs",
            "sha256": self.sha256,
            "splits": {name: len(pairs) for name, pairs in self.splits.items()},
        }


def read_harvest(folder: str | os.PathLike[str]) -> Harvest:
    """Read all shards of a harvest, including the parts of several machines.

    The folder contains *.parquet, itself or in its folders, with the columns sentence1 and sentence2 (strings), score
    (a number) and split ("train", "dev" or "test"). Hidden files and names that begin with an underscore are ignored.
    """
    path = Path(folder).expanduser()
    parquet_files = (file.relative_to(path) for file in path.rglob("*.parquet"))
    names = sorted(
        (file for file in parquet_files if not any(part[0] in "._" for part in file.parts)), key=lambda file: file.name
    )
    if not names:
        there = "it contains no *.parquet" if path.is_dir() else "there is no such folder"
        raise ContextError(f"{folder}: {there}; give the output folder of `likewise context harvest`")
    for shard, other in itertools.pairwise(names):
        if shard.name == other.name:
            raise ContextError(
                f"{folder} contains {shard} and {other}, which are the same shard: remove one of the parts"
            )
    files = [path / name for name in names]
    whole = pa.concat_tables([_shard(file) for file in files])
    splits = {name: ScoredPairs(whole.filter(pc.equal(whole["split"], name)).drop_columns("split")) for name in SPLITS}
    if not len(splits["train"]):
        raise ContextError(f"{folder}: {counted(len(whole), 'pair')}, but none of them has split 'train': harvest more")
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return Harvest(splits, tuple(str(file) for file in files), digest.hexdigest())


@dataclass(frozen=True)
class ScoreScale:
    """A linear map from scores to targets, which keeps the order of pairs.

    * cosine, the paper's: Origin's similarity is itself a cosine (equation 4), which is the target.
    * stretch, ours: the 1% quantile of the training pairs becomes 0 (`low`), the 99% quantile becomes 1 (`high`), and
      targets are clipped to -1 and 1. Origin's vectors contain log probabilities of the same sign, so their cosines are
      close to 1, and an encoder trained towards them would give all sentences one vector.
    * base, ours: the line on which the scores are nearest to the cosines of the base, by least squares. The targets
      then only differ from the base by the information of the scores.
    """

    rule: Rule
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def fit(cls, rule: Rule, scores: np.ndarray, cosines: np.ndarray | None = None) -> ScoreScale:
        """Fit the scale of a harvest to the scores (P,) of its training pairs.

        Args:
            cosines: (P,) of the base for the same pairs, for the rule "base".
        """
        if rule == "cosine":
            least, most = float(scores.min()), float(scores.max())
            if least < -1.000001 or most > 1.000001:
                raise ContextError(
                    f"the harvested scores range from {least:.4g} to {most:.4g}, but cosines range from -1 to 1: use "
                    f"scale=stretch"
                )
            return cls(rule)
        if rule == "base":
            assert cosines is not None
            if scores.std() < 1e-9 or (slope := float(np.polyfit(scores, cosines, 1)[0])) < 1e-6:
                raise ContextError(
                    "the harvested scores do not increase with the cosines of the base, so that no line maps one to "
                    "the other: use scale=stretch"
                )
            low = float(scores.mean()) - float(cosines.mean()) / slope
            return cls(rule, low, low + 1 / slope)
        low, high = (float(value) for value in np.quantile(scores, (0.01, 0.99)))
        if high - low < 1e-9:
            raise ContextError(f"98% of the harvested scores are {low:.6g}: there is nothing to learn from them")
        return cls(rule, low, high)

    def to_target(self, scores: np.ndarray) -> np.ndarray:
        """Return the targets (P,) of scores (P,), from -1 to 1."""
        return np.clip((np.asarray(scores, dtype=np.float64) - self.low) / (self.high - self.low), -1.0, 1.0)

    def from_target(self, targets: np.ndarray) -> np.ndarray:
        """Return the scores (P,) of cosines (P,)."""
        return self.low + np.asarray(targets, dtype=np.float64) * (self.high - self.low)


def _shard(file: Path) -> pa.Table:
    """Read and check one shard."""
    again = "repeat the harvest with `likewise context harvest --overwrite`"
    kinds = {"sentence1": pa.string(), "sentence2": pa.string(), "score": pa.float64(), "split": pa.string()}
    try:
        parquet = pq.ParquetFile(file)
        names = parquet.schema_arrow.names
        if missing := [name for name in kinds if name not in names]:
            raise ContextError(f"{file} has no column {', '.join(missing)}, only {', '.join(names)}; {again}")
        table = parquet.read(columns=list(kinds))
    except (pa.ArrowException, OSError) as error:
        raise ContextError(unread(f"{file}: the Parquet file", error, again)) from None
    columns = []
    for name, kind in kinds.items():
        try:
            column = table[name].cast(kind)
        except pa.ArrowException as error:
            raise ContextError(f"{file}: column {name} is {table[name].type}, not {kind} ({error}); {again}") from None
        good = pc.is_valid(column)
        if name == "score":
            good = pc.and_(good, pc.is_finite(column).fill_null(False))
        elif name == "split":
            good = pc.and_(good, pc.is_in(column, pa.array(SPLITS)))
        if not pc.all(good).as_py():
            row = pc.index(good, False).as_py()
            raise ContextError(f"{file}:{row + 1}: {name} is {column[row].as_py()!r}; {again}")
        columns.append(column)
    return pa.table(columns, names=list(kinds))
