"""The texts of files with their vectors: read once, encoded once, and cached for the next call.

Letters of the shapes: N texts, S different texts, D embedding.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from likewise.corpus.clean_text import digest_of
from likewise.corpus.counts import CorpusReport
from likewise.corpus.formats import Source
from likewise.corpus.inputs import ID, TextSource
from likewise.corpus.json_rows import JsonLines
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.rows import field_text
from likewise.corpus.sentence_splitter import joined
from likewise.corpus.sources import find_sources, tell
from likewise.errors import LikewiseError, counted
from likewise.inference.engines.engine import EngineName, EnginePrecision
from likewise.inference.handle import ModelHandle
from likewise.runs.cache import cached, find_in_cache, in_cache
from likewise.runs.whole_files import Record, Values

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.runs.progress import Bar, Progress

_TEXTS, _ENDS, _VECTORS = "texts.txt", "ends.npy", "vectors.npy"


class TextError(LikewiseError):
    """Raised if there are too few texts, or the input is not text; the message names the cure."""


class Unit(NamedTuple):
    """A text: a line, a row or a paragraph, its place, and the fields of its row."""

    text: str
    file: str
    line: int
    row: Values | None = None


@dataclass(frozen=True)
class CachedTexts:
    """Texts in their order, each with the number of the different text that it is; empty ones are skipped.

    Attributes:
        folder: Folder in the cache with the distinct texts and their vectors.
        files: Paths to the files; "" for in-memory texts.
        file, line: (N,) where each text stands: the number of its file, and the line from 1, in a Parquet file the row.
        number: (N,) which of the different texts each is; these are numbered in the order in which they come.
        position: (N,) the place of each among all that were read, from 0.
        read: Number of texts, including empty texts.
        fingerprint: Fingerprint of the distinct texts, the model and the encoding.
    """

    folder: Path
    files: tuple[str, ...]
    file: np.ndarray
    line: np.ndarray
    number: np.ndarray
    position: np.ndarray
    read: int
    fingerprint: str
    report: CorpusReport = field(repr=False, compare=False)
    encoder: ModelHandle = field(repr=False, compare=False)
    _ends: np.ndarray = field(repr=False, compare=False)
    _bytes: np.ndarray = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.number)

    @property
    def different(self) -> int:
        """S, the number of different texts."""
        return len(self._ends)

    @property
    def first(self) -> np.ndarray:
        """(S,) first position of each distinct text."""
        places: np.ndarray = np.unique(self.number, return_index=True)[1]
        return places

    @property
    def of_all(self) -> str:
        """The fingerprint of all texts in their order, their locations, the model and the encoding."""
        places = (self.number, self.position, self.file, self.line)
        said = "\0".join([self.fingerprint, str(self.read), *self.files]).encode("utf-8", "surrogatepass")
        return blake2b(said + b"".join(place.tobytes() for place in places), digest_size=16).hexdigest()

    @property
    def vectors(self) -> np.ndarray:
        """(S, D) normalized vectors of the distinct texts, read on demand."""
        vectors: np.ndarray = np.load(self.folder / _VECTORS, mmap_mode="r")
        return vectors

    def text(self, number: int) -> str:
        """Return a different text by its number."""
        begin = int(self._ends[number - 1]) + 1 if number else 0
        return self._bytes[begin : int(self._ends[number])].tobytes().decode("utf-8")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return vectors (P, D) of length 1 of other texts, by the same encoder."""
        vectors: np.ndarray = self.encoder.model.encode(list(texts), normalize_embeddings=True)
        return vectors

    def row(self, place: int) -> Record:
        """Return a text and its place, by its position among the texts that are not empty."""
        name = self.files[int(self.file[place])]
        row = {"text": self.text(int(self.number[place])), **({"file": name} if name else {})}
        return {**row, "line": int(self.line[place])}


def read_units(texts: TextSource, progress: Progress, report: CorpusReport | None = None) -> Iterator[Unit]:
    """Yield texts in their order: given texts, the lines of a list, the rows of tables, paragraphs of prose.

    Args:
        progress: Progress that reports skipped input: files of a folder, and unreadable rows.
        report: Report of these lines.

    Raises:
        CorpusError: If a file cannot be read; the message names the line and the cure.
    """
    if texts.in_memory and texts.options.field:
        field = texts.options.field
        for line, row in JsonLines().read(Source(texts.path, texts.options)):
            text = " ".join(field_text(texts.path, line, row, field).split())
            whole = {name: row[name] for name in row if name != ID or "id" not in row}
            yield Unit(text, "", line, whole if texts.rows else None)
        return
    report = report if report is not None else CorpusReport()
    sources = find_sources(texts.files, texts.options, progress, report)
    reported = len(report.messages)
    for source in sources:
        for paragraph in read_paragraphs(source, join_rows=True):
            line = next((line for line, _ in paragraph.sentences), 0)
            text = joined([" ".join(sentence.split()) for _, sentence in paragraph.sentences])
            yield Unit(text, "" if texts.in_memory else str(source.path), line, paragraph.row)
    if markup := report.dropped.get("markup"):
        report.note(f"{counted(markup, 'line')} of code, tables and headings are skipped")
    tell(report, progress, reported)


def keep_texts(
    source: TextSource,
    *,
    model: SentenceTransformer | str | PathLike[str],
    engine: EngineName,
    precision: EnginePrecision,
    progress: Progress,
    at_least: int = 2,
) -> CachedTexts:
    """Read texts and encode each distinct text, unless an earlier call has done so.

    A text with cached vectors is not encoded again, regardless of its file. An interrupted run is resumed.

    Raises:
        CorpusError: If a file cannot be read.
        TextError: If there are fewer than `at_least` texts.
    """
    from likewise.inference.encoded_files import encode_file

    encoder = ModelHandle(model, engine, precision)
    facts = encoder.facts
    key, report = blake2b(digest_size=16), CorpusReport()
    way = [facts.fingerprint, facts.prompt(), str(facts.truncate_dim), str(facts.longest), engine, precision]
    key.update("\n".join(way).encode())
    with (
        in_cache("vectors") as home,
        tempfile.TemporaryDirectory(prefix="making-", dir=home, ignore_cleanup_errors=True) as work,
    ):
        folder = Path(work)
        with progress.bar("reading") as bar:
            table, ends, names, read = _written(read_units(source, progress, report), folder / _TEXTS, key, bar)
        if len(table) < at_least:
            named = source.files if isinstance(source.files, str | PathLike) and not source.in_memory else "these texts"
            there = counted(len(table), "text")
            raise TextError(f"{named}: {there}, but {at_least} or more are needed: give more text")
        np.save(folder / _ENDS, ends)
        if find_in_cache("vectors", key.hexdigest()):
            progress.tell("the vectors are taken from the cache")

        def make(made: Path) -> None:
            for name in (_TEXTS, _ENDS):  # the same as in a stopped call
                (folder / name).replace(made / name)
            how: Record = {"engine": engine, "precision": precision, "quiet": progress.quiet}
            encode_file(encoder.model, made / _TEXTS, made / _VECTORS, normalize=True, **how)

        final = cached("vectors", key.hexdigest(), make, resumes=True)
    known = np.load(final / _ENDS, mmap_mode="r")
    text = np.memmap(final / _TEXTS, dtype=np.uint8, mode="r")
    file_of, line, number_of, position_of = table.T
    fingerprint = key.hexdigest()
    return CachedTexts(
        final, tuple(names), file_of, line, number_of, position_of, read, fingerprint, report, encoder, known, text
    )


def _written(units: Iterable[Unit], path: Path, key: Any, bar: Bar) -> tuple[np.ndarray, np.ndarray, list[str], int]:
    """Write the different texts to a file, each followed by a line end, and update a hash with them.

    Returns:
        The file, line, number and position (N, 4) of each text that is not empty; the places (S,) in bytes where the
        different texts end; the names of the files; and the number of texts, including empty ones.
    """
    numbers: dict[bytes, int] = {}
    names: dict[str, int] = {}
    places, ends, size, read = array("i"), array("q"), 0, 0
    with path.open("wb") as file:
        for position, unit in enumerate(units):
            read = position + 1
            bar.advance()
            if not unit.text:
                continue
            digest = digest_of(unit.text)
            number = numbers.setdefault(digest, len(ends))
            if number == len(ends):
                key.update(digest)
                size += file.write(unit.text.encode("utf-8")) + 1
                file.write(b"\n")
                ends.append(size - 1)
            places.extend((names.setdefault(unit.file, len(names)), unit.line, number, position))
    return np.array(places, dtype=np.int32).reshape(-1, 4), np.array(ends, dtype=np.int64), list(names), read
