"""Input texts: paths to files, or in-memory texts, which are written to a file and read from there."""

from __future__ import annotations

import glob
import json
import math
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from hashlib import blake2b
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from likewise.corpus.corpus_options import TEXT, CorpusError, CorpusOptions, Spec
from likewise.errors import counted
from likewise.runs.cache import cached, made_in_cache
from likewise.runs.whole_files import Record

GivenTexts = str | PathLike[str] | Iterable[object]
"""Files, folders or patterns by their names; a list, a column or any other iterable of texts; or rows: mappings, a
DataFrame or an Arrow table."""
ID = "_id"
_HEAD = 1000
"""Items that decide what is given."""
_LONGEST_NAME = 4096
_FILE_NAME = re.compile(r"\S+\.\w{1,7}")


@dataclass(frozen=True)
class TextSource:
    """Text to read.

    Attributes:
        files: Files to read. In-memory texts are in one file of rows, with the fields of rows and `_id`: the id of the
            row, or the position of the text.
        options: Options of reading.
        in_memory: Whether texts were passed in memory.
        rows: Whether they were rows with fields.
        count: Number of in-memory texts; 0 for files.
        first: Id of the first one, if they have no ids.
    """

    files: Spec
    options: CorpusOptions
    in_memory: bool = False
    rows: bool = False
    count: int = 0
    first: int = 0

    @property
    def entries(self) -> list[str | PathLike[str]]:
        """The files as a list."""
        return [self.files] if isinstance(self.files, str | PathLike) else list(self.files)

    @property
    def names(self) -> list[str]:
        """The names of the files for a record, or the number of texts."""
        return [counted(self.count, "row" if self.rows else "text")] if self.in_memory else list(map(str, self.entries))

    @property
    def path(self) -> Path:
        """The file of texts that were given themselves."""
        assert self.in_memory
        return Path(self.files)  # type: ignore[arg-type]


def given_texts(
    texts: GivenTexts | TextSource,
    options: CorpusOptions | None = None,
    *,
    first: int = 0,
    stack: ExitStack | None = None,
) -> TextSource:
    """Find the source of the texts that were given.

    A name or a list of names means files. A list of other strings, a column of a DataFrame, or any other iterable of
    strings are texts; mappings, a DataFrame, or an Arrow table are rows with a text each. Texts are written to a file
    called by a digest of them, so that memory does not grow with their number, and the same texts resume the same job.

    Args:
        texts: Files or texts. The first 1,000 items of an iterable decide which.
        options: Options of reading; `field` names the text of a row, by default "text".
        first: Id of the first text, if the texts have none.
        stack: Stack that closes and removes the file; None keeps it in the cache.

    Raises:
        CorpusError: If nothing is given, or files and texts together; an item is neither; an id is given twice.
    """
    options = options or CorpusOptions()
    if isinstance(texts, TextSource):
        return texts
    if isinstance(texts, str) and len(texts.split()) > 1 and not {*"/\\*"} & {*texts} and not _is_there(texts):
        excerpt = texts if len(texts) <= 40 else f"{texts[:40]}..."
        raise CorpusError(f"{excerpt}: no such file: check the path, or pass a text in a list: [text]")
    if isinstance(texts, str | PathLike):
        return TextSource(texts, options)
    items = _items(texts)
    head = list(islice(items, _HEAD))
    if not head:
        raise CorpusError("there is nothing to read: give files, folders, patterns or texts")
    if _are_files(head):
        return TextSource([*head, *items], options)
    rows = isinstance(head[0], Mapping)
    lines = options.split == "line" and not rows
    field = (options.field or TEXT) if rows else TEXT
    suffix = ".txt" if lines else ".jsonl"
    with ExitStack() as own:
        made = tempfile.NamedTemporaryFile(dir=made_in_cache("texts"), prefix="making-", suffix=suffix)  # noqa: SIM115
        file = (stack or own).enter_context(made)
        digest, count = blake2b(digest_size=16), 0
        for row in _checked(chain(head, items), rows, field, first):
            line = " ".join(row[field].split()) if lines else json.dumps(row, ensure_ascii=False, default=str)
            written = f"{line}\n".encode("utf-8", "surrogatepass" if lines else "backslashreplace")
            digest.update(written)
            file.write(written)
            count += 1
        file.flush()
        path, name = Path(file.name), f"texts{suffix}"
        if not stack:  # the same texts keep their time, by which what is made of them is known
            path = cached("texts", [digest.hexdigest(), suffix], lambda to: (to / name).hardlink_to(file.name)) / name
    read = {"encoding": "utf-8"} if lines else {"encoding": "utf-8", "split": "auto", "field": field}
    return TextSource(str(path), options.updated(**read), True, rows, count, first)


def _items(texts: object) -> Iterator[Any]:
    """Yield the texts, rows or names of an iterable; of a DataFrame or an Arrow table its rows."""
    frame: Any = texts
    if hasattr(frame, "to_batches"):  # an Arrow table
        from likewise.corpus.parquet_rows import plain_rows

        return (row for batch in frame.to_batches() for row in plain_rows(batch))
    if hasattr(frame, "to_pylist"):  # an Arrow column
        return iter(frame.to_pylist())
    if isinstance(texts, Mapping | bytes) or not isinstance(texts, Iterable):
        raise CorpusError(
            f"the corpus must not be {_kind(texts)}: give files, folders or patterns, a list of texts, or rows such as "
            '[{"text": "..."}]'
        )
    if hasattr(frame, "iter_rows"):  # polars
        return iter(frame.iter_rows(named=True))
    if hasattr(frame, "itertuples"):  # pandas
        from likewise.corpus.rows import distinct_names

        if frame.index.name in (ID, "id") and frame.index.name not in frame.columns:
            frame = frame.reset_index()
        names = distinct_names([str(name) for name in frame.columns])
        return (dict(zip(names, row, strict=True)) for row in frame.itertuples(index=False, name=None))
    if getattr(frame, "ndim", 1) != 1:
        raise CorpusError(f"an array of {frame.ndim} dimensions is not a list of texts: give one of its columns")
    return iter(texts)


def _are_files(head: list[object]) -> bool:
    """Return whether items are names of files.

    Raises:
        CorpusError: If some of them are files and others are texts.
    """
    named = [isinstance(item, PathLike) or (isinstance(item, str) and _is_there(item)) for item in head]
    others = [item for item, is_name in zip(head, named, strict=True) if not is_name]
    if all(isinstance(item, str) and _FILE_NAME.fullmatch(item) for item in others):
        return True  # missing files raise their own error
    if not any(named):
        return False
    file, text = str(head[named.index(True)]), others[0]
    excerpt = repr(text if len(text) <= 40 else f"{text[:40]}...") if isinstance(text, str) else _kind(text)
    raise CorpusError(
        f"{file!r} is a file or a folder here, but {excerpt} is not: give files or texts, not both. Pass a text with "
        f'the name of a file as a row, {{"text": {json.dumps(file)}}}'
    )


def _is_there(name: str) -> bool:
    """Return whether a string names a file, or a pattern that some file matches."""
    if not name or len(name) > _LONGEST_NAME or "\n" in name or "\0" in name:
        return False
    if name == "bundled:wiki-sample" or name.startswith("hf:"):
        return True
    with suppress(OSError, ValueError, RuntimeError):
        path = Path(name).expanduser()
        return path.exists() or (glob.has_magic(name) and next(glob.iglob(str(path)), None) is not None)  # noqa: PTH207
    return False


def _checked(items: Iterable[object], rows: bool, field: str, first: int) -> Iterator[Record]:
    """Yield the row of each item, with its id.

    Raises:
        CorpusError: If an item is not a string or a row like the first item, or an id is given twice.
    """
    seen: dict[str, int] = {}  # the ids, with their rows
    for position, item in enumerate(items):
        name = f"{'rows' if rows else 'texts'}[{position}]"
        if rows:
            if not isinstance(item, Mapping):
                raise CorpusError(f"{name} is {_kind(item)}, but the items before it are rows")
            row = {str(key): plain_value(value) for key, value in item.items()}
            text = row.get(field)
            if field not in row:
                there = ", ".join(row) or "nothing"
                raise CorpusError(
                    f"{name} has no field {field!r}, only {there}: name the field that contains the text, such as "
                    'corpus_options=CorpusOptions(field="body")'
                )
        else:
            row, text = {TEXT: item}, item
        if not isinstance(text, str):
            where = f"{name}[{field!r}]" if rows else name
            cure = "drop it, in pandas by .dropna()" if _kind(text) == "missing" else "give strings"
            raise CorpusError(f"{where} is {_kind(text)}, not a string: {cure}")
        own = next((row[key] for key in (ID, "id") if row.get(key) is not None), None)
        if own is not None and (isinstance(own, bool) or not isinstance(own, int | str)):
            raise CorpusError(f"{name} has the id {own!r}: give a string or an integer")
        if position and (own is None) == bool(seen):
            has, others = ("no id", "one") if own is None else ("an id", "none")
            raise CorpusError(f"{name} has {has}, but the rows before it have {others}: give all or none")
        if own is not None and (same := seen.setdefault(str(own), position)) != position:
            raise CorpusError(f"rows[{same}] and {name} have the same id: give each row its own")
        yield {ID: first + position if own is None else own, **{key: row[key] for key in row if key != ID}}


def plain_value(value: object) -> Any:
    """Return a value of a row for JSON: Python numbers, dates in ISO format, and None for missing values.

    >>> plain_value(date(2024, 5, 1)), plain_value(float("nan")), plain_value(np.int64(3))
    ('2024-05-01', None, 3)
    """
    if isinstance(value, str | bool | int) or value is None:
        return str(value) if isinstance(value, str) else value
    if isinstance(value, np.generic):
        value = value.item() if not isinstance(value, np.datetime64) else value.astype("datetime64[us]").item()
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, datetime):
        if value != value:  # pandas' NaT
            return None
        aware = value.tzinfo is not None
        return (value.astimezone(UTC).replace(tzinfo=None) if aware else value).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if hasattr(value, "tolist"):  # an array of numpy, such as pandas has of a list in Parquet, or a tensor
        return plain_value(value.tolist())
    if isinstance(value, set | frozenset | tuple | list):
        members = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [plain_value(member) for member in members]
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def _kind(value: object) -> str:
    return "missing" if plain_value(value) is None else f"of type {type(value).__name__}"
