"""Labelled rows in memory, from whatever file they came."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from likewise.errors import LikewiseError
from likewise.training.running import LABEL

_CHUNK = 10_000


class LabelledDataError(LikewiseError):
    """Labelled data that cannot be read as asked; the message names the file, the line and the cure."""


@dataclass
class Dropped:
    """Rows that are left out, counted by reason, and where the first of each was."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, where: str) -> None:
        """Count a row."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        self.first.setdefault(reason, where)

    def __str__(self) -> str:
        return "; ".join(f"{n:,} left out: {why} (first: {self.first[why]})" for why, n in self.counts.items())


@dataclass(frozen=True)
class LabelledRows:
    """Rows of texts, with or without a label.

    Attributes:
        dataset: a Hugging Face dataset: the text columns in order, then 'label' where there is one.
        unit: what a row is, in the plural, for the user.
        sources: the files.
        sha256: of the rows in order.
        dropped: what was left out.
    """

    dataset: Any
    unit: str
    sources: tuple[str, ...]
    sha256: str
    dropped: Dropped

    def __len__(self) -> int:
        return len(self.dataset)

    def __str__(self) -> str:
        told = f"{len(self):,} {self.unit} from {', '.join(self.sources)}"
        return f"{told}\n{self.dropped}" if self.dropped.counts else told

    @property
    def texts(self) -> list[str]:
        """The names of the text columns."""
        return [name for name in self.dataset.column_names if name != LABEL]

    def record(self) -> dict[str, Any]:
        """What the run's record says of them."""
        return {
            "sources": list(self.sources),
            "sentences": len(self),
            "unit": self.unit,
            "sha256": self.sha256,
            "dropped": self.dropped.counts,
        }


def collect(
    rows: Iterable[Sequence[Any]],
    columns: Sequence[str],
    kind: str | None,
    unit: str,
    sources: Sequence[str | Path],
    dropped: Dropped,
) -> LabelledRows:
    """Put rows into a dataset, a block at a time.

    Args:
        rows: the texts of a row and, where there is one, its label.
        columns: names of the texts.
        kind: Arrow type of the label, "int64" or "float32"; None for rows without one.
        unit, sources, dropped: see `LabelledRows`. Complete only once the rows are read.

    Raises:
        LabelledDataError: no row is left.
    """
    import pyarrow as pa
    from datasets import Dataset
    from datasets.table import InMemoryTable

    fields = [(name, pa.string()) for name in columns] + ([(LABEL, pa.type_for_alias(kind))] if kind else [])
    schema = pa.schema(fields)
    digest = hashlib.sha256()
    blocks = []
    source = iter(rows)
    while block := list(islice(source, _CHUNK)):
        for row in block:
            digest.update(repr(tuple(row)).encode("utf-8", "backslashreplace"))
        arrays = [pa.array(values, type=fields[i][1]) for i, values in enumerate(zip(*block, strict=True))]
        blocks.append(pa.record_batch(arrays, schema=schema))
    named = tuple(str(path) for path in sources)
    if not blocks:
        raise LabelledDataError(f"{', '.join(named)}: no {unit} are in it{f' ({dropped})' if dropped.counts else ''}")
    dataset = Dataset(InMemoryTable(pa.Table.from_batches(blocks, schema=schema)))
    return LabelledRows(dataset, unit, named, digest.hexdigest(), dropped)
