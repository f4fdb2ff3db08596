"""The table of passages in LanceDB: its columns, what is written to it, and its two kinds of search.

A reader sees the version that carries the tag `finished`, and so never half of an update.
Letters of the shapes: S passages, D embedding.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from datetime import timedelta
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import LikewiseError, first_line, require_extra
from likewise.inference.vector_parts import matrix_of, vector_column
from likewise.searching.conditions import ConditionError, condition_of
from likewise.searching.passages import IndexedPassage

SHOWN = ("file", "line", "title", "text")
_OWN = ("source", "key", "last", *SHOWN)
_CLIENT = "lance_namespace_urllib3_client"
"""Of a service that is not used here, generated: LanceDB takes its types alone, and the rest is half of its import."""
_KEPT = timedelta(minutes=15)
"""How long the versions before an update are kept, for readers that still use them."""
_FINISHED = "finished"
_LISTED = 1000
_PROBES, _REFINED = 20, 50


class SearchError(LikewiseError):
    """Raised if an index or a query is not valid; the message names the cure."""


def _lancedb() -> Any:
    require_extra("search", "An index", "lancedb")
    os.environ.setdefault("LANCEDB_LOG", "error")  # read at the import: it would warn of each table that it makes
    client = find_spec(_CLIENT) if _CLIENT not in sys.modules else None
    if client is not None:
        sys.modules[_CLIENT] = module_from_spec(client)
    import lancedb

    if client is not None:
        del sys.modules[_CLIENT]  # imported by somebody else, it is whole
    return lancedb


class Table:
    """The passages of an index.

    Args:
        folder: of the index.
        name: of the table.
        finished: open it as it was when it was finished the last time, to read; otherwise to write to it.
    """

    def __init__(self, folder: Path, name: str, finished: bool = False) -> None:
        self.folder, self.name = folder, name
        lancedb = _lancedb()
        try:
            self._table = lancedb.connect(folder).open_table(name)
            if finished:
                self._table.checkout(_FINISHED)
            self.is_approximate = "vector_idx" in self._indexes()
        except (ValueError, RuntimeError, OSError) as error:
            raise SearchError(
                f"{folder} is damaged ({first_line(error)}): make it again with `likewise index ... --overwrite`"
            ) from None

    @classmethod
    def create(cls, folder: Path, name: str, dimension: int, metadata: Sequence[str]) -> Table:
        """Make an empty table in a folder; an older one of that name is removed."""
        import pyarrow as pa

        own = (*_OWN, "vector")
        if wrong := [one for one in metadata if one in own or not re.fullmatch(r"[A-Za-z_]\w*", one)]:
            raise SearchError(
                f"a metadata field cannot be called {wrong[0]!r}: give one of letters and digits that is none of "
                f"{', '.join(own)}"
            )
        kinds = dict.fromkeys((*_OWN, *metadata), pa.string()) | {"last": pa.bool_(), "line": pa.int32()}
        schema = pa.schema({**kinds, "vector": pa.list_(pa.float32(), dimension)})
        _lancedb().connect(folder).create_table(name, schema=schema, mode="overwrite")
        return cls(folder, name)

    @property
    def rows(self) -> int:
        """The number of passages."""
        return int(self._table.count_rows())

    @property
    def metadata(self) -> list[str]:
        """The names of the metadata fields."""
        return [name for name in self._table.schema.names if name not in (*_OWN, "vector")]

    def condition(self, given: str) -> str:
        """Return a condition on the fields as LanceDB reads it; see `condition_of`.

        Raises:
            SearchError: it is not valid.
        """
        try:
            return condition_of(given, [*SHOWN, *self.metadata])
        except ConditionError as error:
            raise SearchError(str(error)) from None

    def sources(self) -> dict[str, tuple[str, int, bool]]:
        """Return, for each source, its file, how many passages it has, and whether they are all of them."""
        rows = self._select(["source", "file", "last"]).group_by(["source", "file"])
        found = rows.aggregate([("last", "count"), ("last", "max")]).to_pylist()
        return {row["source"]: (row["file"], row["last_count"], row["last_max"]) for row in found}

    def known(self, keys: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the vectors, (D,) each, of those texts that are in the table, by key."""
        found = self._select(["key", "vector"], f"key IN ({_quoted(keys)})")
        rows = matrix_of(found["vector"])
        return dict(zip(found["key"].to_pylist(), rows, strict=True))

    def add(
        self, placed: Sequence[tuple[str, str, bool, IndexedPassage]], keys: Sequence[str], vectors: np.ndarray
    ) -> None:
        """Add passages (source, file, whether it is the last of its source, passage), with their vectors (S, D)."""
        import pyarrow as pa

        names = (*_OWN, *self.metadata)
        rows = [
            (source, key, last, file, one.line, one.title, one.text, *one.metadata)
            for (source, file, last, one), key in zip(placed, keys, strict=True)
        ]
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        self._table.add(pa.table(columns | {"vector": vector_column(vectors)}, schema=self._table.schema))

    def remove(self, sources: Sequence[str]) -> None:
        """Remove the passages of sources."""
        for start in range(0, len(sources), _LISTED):
            self._table.delete(f"source IN ({_quoted(sources[start : start + _LISTED])})")

    def index_words(self, language: str) -> None:
        """Index the words of titles and texts, or add what is new to these indexes."""
        from lancedb.index import FTS

        there = self._indexes()
        for column in ("title", "text"):
            if f"{column}_idx" not in there:
                self._table.create_index(column, config=FTS(language=language))

    def index_vectors(self) -> None:
        """Make the approximate index of the vectors, if there is none."""
        from lancedb.index import IvfPq

        if not self.is_approximate:
            self._table.create_index("vector", config=IvfPq(distance_type="cosine"))
            self.is_approximate = True

    def optimize(self) -> None:
        """Join small pieces, and take new passages up into the indexes. Older versions are kept."""
        self._table.optimize(cleanup_older_than=timedelta(days=36500))

    def finish(self) -> None:
        """Show readers the present version."""
        tags = self._table.tags
        (tags.update if _FINISHED in tags.list() else tags.create)(_FINISHED, self._table.version)

    def clean(self) -> None:
        """Remove older versions, tables that no record names any more, and half-written files."""
        self._table.optimize(cleanup_older_than=_KEPT)
        for path in self.folder.glob("*.lance"):
            if path.stem != self.name:
                shutil.rmtree(path, ignore_errors=True)
        for path in self.folder.rglob(".tmp*"):  # of a killed process: only one writes at a time
            if path.is_file():
                path.unlink()

    def _indexes(self) -> set[str]:
        return {one.name for one in self._table.list_indices()}

    def sample(self, count: int) -> np.ndarray:
        """Return the vectors (S, D) of up to `count` passages, evenly spaced."""
        places = np.unique(np.linspace(0, self.rows - 1, num=min(count, self.rows)).astype(int)).tolist()
        return matrix_of(self._table.take_offsets(places).select(["vector"]).to_arrow()["vector"])

    def by_vector(
        self, vector: np.ndarray, count: int, where: str | None = None, exact: bool = False
    ) -> list[dict[str, Any]]:
        """Return the nearest passages, each with its similarity, as `similarity` and `score`."""
        query = self._table.search(vector).distance_type("cosine").limit(count).select([*self._shown, "_distance"])
        if exact:
            query = query.bypass_vector_index()
        elif self.is_approximate:
            query = query.nprobes(_PROBES).refine_factor(_REFINED)
        found = self._filtered(query, where)
        return [row | dict.fromkeys(("similarity", "score"), 1.0 - row["_distance"]) for row in found]

    def by_words(self, text: str, count: int, where: str | None = None) -> list[dict[str, Any]]:
        """Return the passages with the highest BM25 scores, each with it as `words` and `score`."""
        from lancedb import query as queries

        kind: Any = queries.MultiMatchQuery
        query = self._table.search(kind(text, ["title", "text"]), query_type="fts")
        found = self._filtered(query.limit(count).select([*self._shown, "_score"]), where)
        return [row | dict.fromkeys(("words", "score"), row["_score"]) for row in found]

    @property
    def _shown(self) -> list[str]:
        return ["source", *SHOWN, *self.metadata]

    def _filtered(self, query: Any, where: str | None) -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = (query.where(where, prefilter=True) if where else query).to_list()
            return found
        except (ValueError, RuntimeError) as error:
            if where is None:
                raise
            fields = ", ".join([*SHOWN, *self.metadata])
            raise SearchError(
                f"the filter {where!r} is not valid ({first_line(error)}): write it as in SQL, for example "
                f"\"file LIKE '%.md'\"; the fields are {fields}"
            ) from None

    def _select(self, columns: list[str], where: str | None = None) -> Any:
        query = self._table.search().select(columns).limit(None)
        return (query.where(where) if where else query).to_arrow()


def _quoted(values: Sequence[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)  # hex digits only
