"""An open index: one of its states, with consistent files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from likewise.searching.index.geometry import Geometry
from likewise.searching.index.index_record import IndexRecord, finished_record
from likewise.searching.index.lance_access import damaged
from likewise.searching.index.maxsim import TokenCodec
from likewise.searching.index.table import Table
from likewise.searching.parts.lookup import Stored
from likewise.searching.parts.pipeline import Pipeline


@dataclass(frozen=True)
class OpenedIndex:
    """One state of an index.

    Attributes:
        state: Value that differs between states.
        folder: Folder of the index, with links resolved.
        record: Record of the index.
        stored: Passages of the index.
        sentences: Vectors (D,) of the sentences of hits.
    """

    state: object
    folder: Path
    record: IndexRecord
    stored: Stored
    sentences: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> OpenedIndex:
        """Open an index as it was when it was finished the last time."""
        state, folder = state_of(path), path.resolve()
        record = finished_record(folder)
        table = Table(folder, record.table, record.version)
        geometry_path = folder / record.geometry
        codec, geometry = TokenCodec.open(geometry_path) if table.has_tokens else None, Geometry.open(geometry_path)
        if table.has_tokens and codec is None:
            raise damaged(folder, "the form of its tokens is missing")
        return cls(state, folder, record, Stored(table, geometry, codec))

    @property
    def table(self) -> Table:
        """The table of the passages."""
        return self.stored.table

    @property
    def language(self) -> str:
        """The language of the stems."""
        return self.record.language

    @property
    def pipeline(self) -> Pipeline:
        """The parts of the search and their weights."""
        steps = self.record.steps
        return steps if self.stored.codec is not None else steps.updated(tokens=0)

    @property
    def has_whole_ids(self) -> bool:
        """Whether the ids are integers, which are stored as texts."""
        return self.record.ids == "int"

    def named(self, id: str | None) -> str | int | None:
        """Return an id as it was given: as an integer if all ids are integers."""
        whole = id is not None and self.has_whole_ids and id.removeprefix("-").isdecimal()
        return int(id) if id is not None and whole else id


def state_of(path: Path) -> object:
    """Return a value that changes when an index is finished again."""
    try:
        record = (path / "likewise.json").stat()
        return record.st_mtime_ns, record.st_ino, record.st_dev
    except OSError:
        return None
