"""The table of passages in LanceDB: its columns, its updates, and its two kinds of search.

A reader sees the version that the record names, and thus never a partial update. Row ids belong to one version. The
column `searched` contains the searched form of a passage's text. The name of a field's column consists of its kind and
the URL-encoded name of the field. Letters of the shapes: S passages, D embedding, Q queries.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote
from uuid import uuid4

import numpy as np

from likewise.errors import first_line, limit_of
from likewise.evaluation.bm25 import folded
from likewise.inference.vector_columns import matrix_of, vector_column
from likewise.runs.whole_files import Record
from likewise.searching.index.conditions import SearchError, condition_of, quoted
from likewise.searching.index.fields import CALLED, FieldColumn, Kind, output_value
from likewise.searching.index.lance_access import batches, begun, finished, is_lost, lancedb_module, opened, unreadable
from likewise.searching.index.passages import EncodedPassage, IndexedPassage, passage_text
from likewise.searching.query.hit import document_of
from likewise.searching.query.typed_query import has_blanks, standing

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.query import AsyncFTSQuery, AsyncStandardQuery, AsyncVectorQuery

HIT_COLUMNS = ("file", "line", "title", "text")
_OWN = ("source", "key", "last", "id", "searched", *HIT_COLUMNS)
GRACE = 15 * 60.0
"""Seconds for which the versions before an update are kept, for readers that still use them."""
OWN_FOLDER = re.compile(r"passages-[0-9a-f]{8}\.lance|geometry-[0-9a-f]{8}")
"""The names of the folders that `index` makes."""
_LISTED_AT_ONCE = 1000
NOWHERE = "FALSE"
"""The condition that no passage meets."""
_MOST_IDS = 20_000
"""Passages with a phrase up to which they are listed in a condition; more are found by its pattern anew."""
_PROBES = 20
"""Cells of the approximate index that are searched."""
_REFINED, _TIMES = 500, 5
"""Number of vectors that are compared after it, or the multiple of the requested number if this is larger."""
Encoded = tuple[np.ndarray, bytes]
"""The vector (D,) of a text, and its tokens as they are stored; b"" if they are not."""


class Table:
    """The passages of an index.

    Args:
        folder: Path to the index.
        name: Name of the table.
        version: Version to open for reading; by default the table is opened for writing.
    """

    def __init__(self, folder: Path, name: str, version: int | None = None) -> None:
        self.folder, self.name = folder, name
        lancedb = lancedb_module()
        try:
            self._table = finished(opened(lancedb, folder, name, version))
            self.is_approximate = "vector_idx" in self._indexes()
        except (ValueError, RuntimeError, OSError, TypeError, OverflowError) as error:
            raise unreadable(folder, error) from None

    @classmethod
    def create(cls, folder: Path, name: str, dimension: int, tokens: bool = False) -> Table:
        """Make an empty table in a folder, with tokens or without; an older one of that name is removed."""
        import pyarrow as pa

        kinds = dict.fromkeys(_OWN, pa.string()) | {"last": pa.bool_(), "line": pa.int32()}
        kinds |= {"tokens": pa.binary()} if tokens else {}
        schema = pa.schema({**kinds, "vector": pa.list_(pa.float32(), dimension)})
        lancedb_module().connect(folder.resolve()).create_table(name, schema=schema, mode="overwrite")
        return cls(folder, name)

    @cached_property
    def _schema(self) -> pa.Schema:
        """The columns, which LanceDB takes milliseconds to tell."""
        return finished(self._table.schema())

    @property
    def rows(self) -> int:
        """The number of passages."""
        return int(finished(self._table.count_rows()))

    @property
    def version(self) -> int:
        """The number of the present version."""
        return int(finished(self._table.version()))

    @property
    def dimension(self) -> int:
        """D, the length of the vectors."""
        return int(self._schema.field("vector").type.list_size)

    @property
    def metadata(self) -> dict[str, Kind]:
        """The names of the metadata fields, each with the kind of its values."""
        return {name: column.kind for name, column in self._columns.items()}

    @cached_property
    def _columns(self) -> dict[str, FieldColumn]:
        """The columns of the metadata fields by the names of the fields."""
        columns: dict[str, FieldColumn] = {}
        for column in self._schema.names:
            kind, _, name = column.partition("_")
            if kind in CALLED and name:
                field = unquote(name.replace("$", "%"))
                columns[field] = FieldColumn(column, kind, field)
        return columns

    def extend(self, metadata: Mapping[str, Kind]) -> None:
        """Add columns for metadata fields that are not there yet."""
        types = {"int": "bigint", "float": "double", "bool": "boolean"}
        new = {column_of(name, kind): kind for name, kind in metadata.items() if name not in self._columns}
        if new:
            empty = {column: f"cast(NULL as {types.get(kind, 'string')})" for column, kind in new.items()}
            finished(self._table.add_columns(empty))
            del self._schema, self._columns

    @property
    def has_tokens(self) -> bool:
        """True if the tokens of passages are stored."""
        return "tokens" in self._schema.names

    def condition(self, given: str, whole_ids: bool = False) -> str:
        """Return a condition on the fields as LanceDB reads it; see `condition_of`.

        Args:
            whole_ids: Whether the ids are integers, which are stored as texts.

        Raises:
            SearchError: If it is not valid.
        """
        own = {name: FieldColumn(name, "int" if name == "line" else "text") for name in HIT_COLUMNS}
        ids = {"id": FieldColumn("id", "text", exact=True, whole=whole_ids)}
        return condition_of(given, ids | own | self._columns)

    def holding(self, phrase: str) -> str:
        """Return the condition on passages in which the words of a phrase are adjacent."""
        condition = f"regexp_like(searched, '{standing(phrase)}')"
        if not has_blanks(phrase):
            return condition
        query = self._words(folded(phrase), every=True).select([]).with_row_id().limit(_MOST_IDS + 1)
        rows = _ids(finished(query.where(condition).postfilter().to_arrow()))
        if len(rows) > _MOST_IDS:
            return condition
        return f"_rowid IN ({_listed(rows)})" if len(rows) else NOWHERE

    def has_word(self, word: str) -> bool:
        """Return whether a passage has a word, or a form of it."""
        query = self._words(word, every=True).limit(1).select([]).with_row_id()
        return bool(finished(query.to_arrow()).num_rows)

    def sources(self) -> dict[str, tuple[str, int, bool]]:
        """Return, for each source that is a file, its path, how many passages it has, and whether they are all."""
        rows = self._select(["source", "file", "last"], "file != ''").group_by(["source", "file"])
        files = rows.aggregate([("last", "count"), ("last", "max")]).to_pylist()
        return {row["source"]: (row["file"], row["last_count"], row["last_max"]) for row in files}

    def known(self, keys: Sequence[str]) -> dict[str, Encoded]:
        """Return the vectors, (D,) each, and the tokens of the texts that are in the table, by key."""
        columns = ["tokens"] if self.has_tokens else []
        rows = self._select(["key", "vector", *columns], _among("key", keys))
        tokens = rows["tokens"].to_pylist() if columns else [b""] * len(rows)
        encoded = zip(matrix_of(rows["vector"]), tokens, strict=True)
        return dict(zip(rows["key"].to_pylist(), encoded, strict=True))

    def add(self, passages: Sequence[EncodedPassage]) -> None:
        """Add passages."""
        import pyarrow as pa

        names = (*_OWN, *(column.name for column in self._columns.values()))
        rows = [_row(one) for one, *_ in passages]
        columns: Record = dict(zip(names, zip(*rows, strict=True), strict=True))
        columns |= {"tokens": [one.tokens for one in passages]} if self.has_tokens else {}
        vectors = vector_column(np.stack([one.vector for one in passages]))
        finished(self._table.add(pa.table(columns | {"vector": vectors}, schema=self._schema)))

    def remove(self, sources: Sequence[str]) -> None:
        """Remove the passages of sources."""
        for some in _pieces(sources):
            finished(self._table.delete(_among("source", some)))

    def rename(self, source: str, name: str) -> None:
        """Give the passages of a source to one of another name."""
        finished(self._table.update({"source": name}, where=_among("source", [source])))

    def remove_ids(self, ids: Sequence[str]) -> int:
        """Remove the rows of ids, and return how many there were. A file that loses one will be read again."""
        removed: set[str] = set()
        for some in _pieces(ids):
            rows = self._select(["id", "source", "file"], _among("id", some))
            removed |= set(rows["id"].to_pylist())
            finished(self._table.delete(_among("id", some)))
            of_files = {row["source"] for row in rows.to_pylist() if row["file"]}
            for source in sorted(of_files):
                self.rename(source, uuid4().hex)  # belongs to no file, so that the file is read again
        return len(removed)

    def complete(self, sources: Sequence[str]) -> set[str]:
        """Return the sources that are in the table."""
        return set(self._select(["source"], _among("source", sources))["source"].to_pylist())

    def others(self, ids: Sequence[str], sources: Sequence[str]) -> list[str]:
        """Return the earlier sources of ids, except for some sources."""
        rows = self._select(["source"], f"{_among('id', ids)} AND NOT {_among('source', sources)}")
        return list(dict.fromkeys(rows["source"].to_pylist()))

    def all_but(self, requested: Collection[str], where: str | None = None) -> list[str]:
        """Return the sources that meet a condition and are not requested."""
        sources = dict.fromkeys(self._select(["source"], where)["source"].to_pylist())
        return [source for source in sources if source not in requested]

    def next_id(self) -> int:
        """Return the integer after the largest id that is an integer."""
        return max((int(id) for id in self.ids() if id.isdecimal() and len(id) < 19), default=-1) + 1

    def ids(self) -> list[str]:
        """Return all ids, each once, in the order of the table."""
        return [id for id in dict.fromkeys(self._select(["id"])["id"].to_pylist()) if id is not None]

    def index_words(self, language: str) -> None:
        """Index the words of passages with their titles, if there is no such index.

        All words are indexed, including function words and long words, so that they can be searched. ICU divides text
        without spaces.
        """
        from lancedb.index import FTS

        if "searched_idx" not in self._indexes():
            words: Record = {"remove_stop_words": False, "max_token_length": None, "base_tokenizer": "icu/split"}
            finished(self._table.create_index("searched", config=FTS(language=language, **words)))

    def index_vectors(self) -> None:
        """Make the approximate index of the vectors, if there is none."""
        from lancedb.index import IvfPq

        if not self.is_approximate:
            finished(self._table.create_index("vector", config=IvfPq(distance_type="cosine")))
            self.is_approximate = True

    def optimize(self) -> None:
        """Join small pieces, and take new passages up into the indexes. Older versions are kept."""
        finished(self._table.optimize(cleanup_older_than=timedelta(days=36500)))

    def clean(self, left: Mapping[str, float]) -> None:
        """Remove older versions, half-written files of this table, and what earlier ones have left.

        Args:
            left: Names of folders that the index's record lists as its own. Nothing else in the folder is touched.
        """
        finished(self._table.optimize(cleanup_older_than=timedelta(seconds=GRACE)))
        own = self.folder / f"{self.name}.lance"
        for path in own.rglob(".tmp*"):  # of a killed process: only one writes at a time
            if path.is_file():
                path.unlink()
        for name in left:
            path = self.folder / name
            if OWN_FOLDER.fullmatch(name) and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)

    def _indexes(self) -> set[str]:
        return {index.name for index in finished(self._table.list_indices())}

    def sample(self, count: int) -> np.ndarray:
        """Return the vectors (S, D) of up to `count` passages, evenly spaced."""
        return matrix_of(self._spaced(count, ["vector"])["vector"])

    def texts(self, count: int) -> list[str]:
        """Return the texts, as the model reads them, of up to `count` passages, evenly spaced."""
        return [passage_text(row["title"], row["text"]) for row in self._spaced(count, ["title", "text"]).to_pylist()]

    def _spaced(self, count: int, columns: list[str]) -> pa.Table:
        """Return columns of up to `count` passages, evenly spaced."""
        places = np.unique(np.linspace(0, self.rows - 1, num=min(count, self.rows)).astype(int)).tolist()
        return finished(self._table.take_offsets(places).select(columns).to_arrow())

    def keys(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the row ids (S,) of all passages, ascending, and the hashes (S,) of their texts, as integers."""
        rows = self._select(["key"], with_ids=True)
        ids, keys = _ids(rows), rows["key"].to_pylist()
        order = np.argsort(ids)
        return ids[order], np.array(list(map(number_of, keys)), dtype=np.uint64)[order]

    def documents(self) -> np.ndarray:
        """Return the number of the document of each passage (S,), in the order of the row ids."""
        query = self._table.query().select(["file", "line", "title", "id", "source"]).with_row_id()
        ids, numbers = [np.zeros(0, dtype=np.uint64)], list[int]()
        known: dict[object, int] = {}
        for batch in batches(query, 1 << 14):
            ids.append(_ids(batch))
            keys = (document_of(row) if row["file"] else row["source"] for row in batch.to_pylist())
            numbers += [known.setdefault(key, len(known)) for key in keys]
        return np.array(numbers, dtype=np.int32)[np.argsort(np.concatenate(ids))]

    def blocks(self, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the row ids (S,) and vectors (S, D) of all passages, about `size` at a time."""
        for batch in batches(self._table.query().select(["vector"]).with_row_id(), size):
            yield _ids(batch), matrix_of(batch["vector"])

    def nearest(
        self, vector: np.ndarray, count: int, where: str | None = None, exact: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the row ids (S,) of the nearest passages, the nearest first, and their cosines (S,)."""
        return _with_cosines(self._filtered(self._nearest(vector, count, exact), where))

    def about(self, vector: np.ndarray, count: int, where: str | None = None) -> np.ndarray:
        """Return the row ids (S,) of some passages, among which the `count` nearest are likely to be."""
        many = max(_TIMES * count, _REFINED) if self.is_approximate else count
        return _ids(self._filtered(self._nearest(vector, many, refined=False), where))

    def _nearest(
        self, vector: np.ndarray | list[np.ndarray], count: int, exact: bool = False, refined: bool = True
    ) -> AsyncVectorQuery:
        query = self._table.query().nearest_to(vector).distance_type("cosine").limit(count)
        query = query.select(["_distance"]).with_row_id()
        if exact:
            return query.bypass_vector_index()
        if not self.is_approximate:
            return query
        query = query.nprobes(_PROBES)
        return query.refine_factor(max(_TIMES, _REFINED // count)) if refined else query

    def begin_words(self, text: str, count: int) -> Callable[[], pa.Table]:
        """Start a search for the passages with the highest BM25 scores, whose result has `_rowid` and `_score`."""
        return begun(self._words(text).limit(count).select(["_score"]).with_row_id().to_arrow())

    def by_words(self, text: str, count: int, where: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the row ids (S,) of the passages with the highest BM25 scores, the best first, and these (S,)."""
        if not text:
            return np.zeros(0, dtype=np.uint64), np.zeros(0)
        rows = self._filtered(self._words(text).limit(count).select(["_score"]).with_row_id(), where)
        ids, scores = _ids(rows), rows["_score"].to_numpy()
        order = np.lexsort((ids, -scores))  # which of those with equal scores comes first would change
        return ids[order], scores[order]

    def _words(self, text: str, every: bool = False) -> AsyncFTSQuery:
        """Return the query for passages that have a word of a text, or every word."""
        from lancedb import query as queries

        kind: Any = queries.MatchQuery
        operator = queries.FullTextOperator.AND if every else queries.FullTextOperator.OR
        return self._table.query().nearest_to_text(kind(text, "searched", operator=operator))

    def tokens_of(self, ids: np.ndarray) -> list[bytes]:
        """Return the stored tokens of row ids (S,)."""
        tokens: list[bytes] = self._taken(ids, ["tokens"])["tokens"].to_pylist()
        return tokens

    def passages(self, ids: np.ndarray) -> list[Record]:
        """Return the columns that are shown of the passages of row ids (S,), in their order."""
        if not len(ids):
            return []
        names = {column.name: (field, column.kind) for field, column in self._columns.items()}
        return [
            {name: row[name] for name in (*HIT_COLUMNS, "id")}
            | {"metadata": {field: output_value(row[name], kind) for name, (field, kind) in names.items()}}
            for row in self._taken(ids, [*HIT_COLUMNS, "id", *names]).to_pylist()
        ]

    def vectors(self, ids: np.ndarray) -> np.ndarray:
        """Return the vectors (S, D) of row ids (S,)."""
        return matrix_of(self._taken(ids, ["vector"])["vector"])

    def _taken(self, ids: np.ndarray, columns: list[str]) -> pa.Table:
        """Return columns of the passages of row ids (S,), in their order."""
        rows = finished(self._table.take_row_ids(ids.tolist()).select(columns).with_row_id().to_arrow())
        order = np.argsort(own := _ids(rows))
        return rows.take(order[np.searchsorted(own, ids, sorter=order)])

    def allowed(self, ids: np.ndarray, where: str) -> np.ndarray:
        """Return the row ids, of some (S,), whose passages meet a condition."""
        if not len(ids):
            return ids
        query = self._table.query().select([]).with_row_id()
        return _ids(self._filtered(query, f"({where}) AND _rowid IN ({_listed(ids)})", where))

    def _filtered(self, query: AsyncStandardQuery, condition: str | None, where: str | None = None) -> pa.Table:
        """Return the rows of a query that meet a condition, which includes the user's `where`."""
        try:
            return finished((query.where(condition) if condition else query).to_arrow())
        except (ValueError, RuntimeError) as error:
            expression = where or condition
            if expression is None or is_lost(error) or limit_of(error):
                raise
            raise SearchError(f"the filter {expression!r} is not valid: {first_line(error)}") from None

    def _select(self, columns: list[str], where: str | None = None, with_ids: bool = False) -> pa.Table:
        query = self._table.query().select(columns)
        query = query.with_row_id() if with_ids else query
        return finished((query.where(where) if where else query).to_arrow())


def column_of(field: str, kind: Kind) -> str:
    """Return the column of a metadata field, whose name may be any.

    >>> column_of("year", "int"), column_of("Created At", "date"), column_of("_rowid", "text")
    ('int_year', 'date_Created$20At', 'text__rowid')
    """
    return f"{kind}_{quote(field, safe='').replace('.', '%2E').replace('-', '%2D').replace('~', '%7E')}".replace(
        "%", "$"
    )


def _row(passage: IndexedPassage) -> tuple[object, ...]:
    """Return the values of a passage in the columns `_OWN` and in the metadata fields."""
    id = None if passage.id is None else str(passage.id)
    own = (passage.source, passage.key, passage.is_last, id, folded(passage.encoded))
    return (*own, passage.file, passage.line, passage.title, passage.text, *passage.metadata)


def number_of(key: str) -> int:
    """Return the first 16 hex digits of a key as an integer."""
    return int(key[:16], 16)


def _ids(rows: pa.Table) -> np.ndarray:
    ids: np.ndarray = rows["_rowid"].to_numpy()
    return ids


def _with_cosines(rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    return _ids(rows), 1.0 - rows["_distance"].to_numpy()


def _listed(ids: np.ndarray) -> str:
    return ", ".join(map(str, ids.tolist()))


def _among(column: str, values: Sequence[str]) -> str:
    """Return the condition that a column has one of some texts."""
    return f"{column} IN ({', '.join(map(quoted, values))})"


def _pieces(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield values, as many at a time as a condition may list."""
    for start in range(0, len(values), _LISTED_AT_ONCE):
        yield values[start : start + _LISTED_AT_ONCE]
