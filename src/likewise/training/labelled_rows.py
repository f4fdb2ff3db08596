"""Labelled rows as a dataset."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.corpus.tables import LabelledDataError, TableRow

LABEL = "label"
"""The column of labels."""


@dataclass(frozen=True)
class LabelledRows:
    """Rows of texts, with or without a label.

    Attributes:
        dataset: a Hugging Face dataset: the text columns in order, then 'label' where there is one.
        unit: what a row is, in the plural, for the user.
        dropped: the number of rows that were left out, by reason.
        left_out: the same in words, with the place of the first of each.
    """

    dataset: Any
    unit: str
    sources: tuple[str, ...]
    sha256: str
    dropped: Mapping[str, int]
    left_out: str

    def __len__(self) -> int:
        return len(self.dataset)

    def __str__(self) -> str:
        return f"{len(self):,} {self.unit} from {', '.join(self.sources)}\n{self.left_out}".rstrip()

    def record(self) -> dict[str, Any]:
        """Return the facts about the rows for the record of a run."""
        return {
            "sources": list(self.sources),
            "sentences": len(self),
            "unit": self.unit,
            "sha256": self.sha256,
            "dropped": dict(self.dropped),
        }


def collect(
    rows: Iterable[TableRow],
    texts: Sequence[str],
    unit: str,
    sources: Sequence[Path],
    kind: str | None = None,
    number: Callable[[Any, str], Any] | None = None,
) -> LabelledRows:
    """Collect rows in a dataset; those with an empty text or without a label are left out.

    Args:
        rows: the texts of each, then its label.
        kind: Arrow type of the label, "int64" or "float32"; None for rows without one.
        number: (label, place) to the number to learn, None for no label.
    """
    from datasets import Dataset, Features, Value

    dropped: Counter[str] = Counter()
    first: dict[str, str] = {}
    names = [*texts, LABEL] if kind else list(texts)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    digest = hashlib.sha256()
    for place, cells in rows:
        row = list(cells[: len(texts)])
        reason = "" if all(row) else "an empty sentence"
        if number is not None and not reason:
            row.append(number(cells[-1], place))
            reason = "no gold label" if row[-1] is None else ""
        if reason:
            dropped[reason] += 1
            first.setdefault(reason, place)
            continue
        digest.update(repr(tuple(row)).encode("utf-8", "backslashreplace"))
        for name, value in zip(names, row, strict=True):
            columns[name].append(value)
    named = tuple(str(path) for path in sources)
    left_out = "; ".join(f"{n:,} left out: {why} (first: {first[why]})" for why, n in dropped.items())
    if not columns[names[0]]:
        raise LabelledDataError(f"{', '.join(named)}: no {unit} are in it{f' ({left_out})' if left_out else ''}")
    features = Features({name: Value(kind if name == LABEL else "string") for name in names})
    dataset = Dataset.from_dict(columns, features)
    return LabelledRows(dataset, unit, named, digest.hexdigest(), dropped, left_out)
