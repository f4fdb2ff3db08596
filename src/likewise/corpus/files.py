"""Reading of files, compressed or not, as numbered lines of bytes in bounded memory."""

import bz2
import codecs
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.encodings import AUTO, BINARY, LineDecoder, named_encoding
from likewise.errors import limit_of, unread

Tick = Callable[[int], None]
"""Called with the bytes of the file on disk that are done."""

STANDARD_INPUT = Path("standard input")
"""Instead of a file: what is piped into this process."""

LINE_LIMIT = 1 << 20
"""Longest piece of a line, in bytes, that is held at once; a longer line comes in several pieces."""

HEAD = 1 << 16
"""Bytes of a file that decide its format."""

FREE_EXPANSION = 1 << 26
"""Bytes to which every compressed file may expand, whatever its size."""

_MAGIC = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    # The first block, or the end of an empty file: "BZh" alone may begin a text.
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
}
_MAGIC_BYTES = 10
COMPRESSED = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd", ".xz": "xz"}
"""The endings of compressed files, each with its format."""
_TICK_LINES = 4096
_PIECE = 1 << 16
_BUFFER = 1 << 17
_KEEP = "surrogateescape"
_DEFAULTS = CorpusOptions()


class _Pieces(io.RawIOBase):
    """A raw stream of the pieces of an iterator.

    Under a BufferedReader it gives out all that could be read before a fault, whose line is known by that.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._ready = self._ready or next(self._pieces, b"")
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n


def _decompressed(raw: io.BufferedReader, compression: str | None) -> Any:
    if compression == "zstd":
        import pyarrow  # slow to import and needed for this only

        return pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), "zstd")
    if compression == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if compression == "xz":
        return lzma.LZMAFile(raw)
    return bz2.BZ2File(raw) if compression == "bzip2" else raw


def _pieces(stream: Any, path: Path, compression: str | None, options: CorpusOptions) -> Iterator[bytes]:
    """Yield the decompressed bytes of a stream."""
    read = stream.read if compression == "zstd" else stream.read1
    size = 0
    while piece := read(_PIECE):
        size += len(piece)
        if compression:
            check_expansion(path, size, options)
        yield piece


def check_expansion(path: Path, size: int, options: CorpusOptions) -> None:
    """Raise a CorpusError if a compressed file contains more bytes than a text expands to."""
    times = options.max_expansion
    if size > max(FREE_EXPANSION, times * path.stat().st_size):
        raise CorpusError(
            f"{path}: it expands to more than {times} times its size, so it is possibly damaged or malicious. If it is "
            f"correct, raise the option max_expansion"
        )


def _transcoded(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield bytes as UTF-8; bytes that are invalid in the encoding stay unchanged, so that their line is known."""
    decoder = codecs.getincrementaldecoder(encoding)("strict" if "16" in encoding or "32" in encoding else _KEEP)
    for piece in chain(pieces, [b""]):
        text = decoder.decode(piece, final=not piece)
        if text:  # a piece may be too short for a character
            yield text.encode("utf-8", _KEEP)


def check_ends(path: Path) -> None:
    """Raise a CorpusError for a device: /dev/zero has no end."""
    if path.is_char_device() or path.is_block_device():
        raise CorpusError(f"{path}: this is a device, not a file: give a file or a pipe")
    if path.stat().st_dev in kernel_devices():
        raise CorpusError(f"{path}: this is a kernel file, and reading it may never end: copy it first")


@cache
def kernel_devices() -> frozenset[int]:
    """Return the numbers of the file systems that hold no files of a disk: a read of one may never end.

    Where nothing is mounted at /proc or /sys, as in a chroot, the place is an ordinary folder of a disk.
    """
    return frozenset(Path(place).stat().st_dev for place in ("/proc", "/sys") if Path(place).is_mount())


def is_folder(path: Path) -> bool:
    """Return whether a path belongs to a folder.

    Raises:
        CorpusError: If it cannot be examined now: its folder is closed, or on a disk that does not answer.
    """
    try:
        return path.is_dir()
    except OSError as error:
        raise CorpusError(unread(path, error, "check the path")) from None


def format_suffix(path: Path) -> str:
    """Return the ending that names the format, in lower case: '.jsonl' of 'rows.jsonl.gz'."""
    bare = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    return bare.suffix.lower()


def _compression(path: Path, head: bytes) -> str | None:
    named = COMPRESSED.get(path.suffix.lower())
    if named and head and not _MAGIC[named].match(head):
        raise CorpusError(f"{path}:1: not a {named} file: it is damaged or misnamed; recreate or rename it")
    return named or next((name for name, magic in _MAGIC.items() if magic.match(head)), None)


@contextmanager
def _reading(
    path: Path, options: CorpusOptions, *, mend_ends: bool = False
) -> Iterator[tuple[io.BufferedReader, Callable[[], int], str]]:
    """Open a file: its text as UTF-8, what gives its bytes on disk that are read, and the encoding or `BINARY`."""
    piped = path is STANDARD_INPUT
    if piped and sys.stdin is None:
        raise CorpusError("standard input is closed: name a file instead of '-', or pipe a text into the command")
    try:
        if not piped:
            check_ends(path)
        raw: Any = sys.stdin.buffer if piped else path.open("rb")
    except OSError as error:
        raise CorpusError(unread(path, error, "check the path")) from None
    with nullcontext() if piped else raw:
        compression = None if piped else _compression(path, raw.peek(_MAGIC_BYTES)[:_MAGIC_BYTES])
        stream = _decompressed(raw, compression)  # held here: pyarrow's closes the file where it is given up
        pieces = _pieces(stream, path, compression, options)
        head, rest = _first(pieces)
        encoding = named_encoding(options.encoding, head, len(head) < HEAD)
        text: Iterator[bytes] = chain([head], rest)
        if encoding not in ("utf-8", BINARY):
            text = _transcoded(text, encoding)
        if mend_ends and b"\r" in head and b"\n" not in head:
            text = (piece.replace(b"\r", b"\n") for piece in text)
        yield io.BufferedReader(_Pieces(text), _BUFFER), raw.tell, encoding


def _first(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the bytes that decide the encoding, and what follows them: also a fault that was met."""
    buffer = b""
    try:
        while len(buffer) < HEAD and (piece := next(pieces, b"")):
            buffer += piece
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        if not buffer:
            raise
        return buffer, _raised(error)
    return buffer, pieces


def _raised(error: Exception) -> Iterator[bytes]:
    raise error
    yield b""


def read_head(path: Path, options: CorpusOptions = _DEFAULTS) -> bytes:
    """Return the first decompressed bytes of a file, fewer if it is shorter or damaged."""
    head = b""
    with _faults(path, lambda: 1), _reading(path, options) as (stream, _, _):
        try:
            while len(head) < HEAD and (piece := stream.read1(HEAD - len(head))):
                head += piece
        except (EOFError, OSError, lzma.LZMAError, zlib.error, UnicodeError):
            if not head:  # otherwise reading on will find it, and its line
                raise
    return head


def numbered_lines(
    path: Path,
    options: CorpusOptions = _DEFAULTS,
    tick: Tick | None = None,
    limit: int = LINE_LIMIT,
    on_encoding: Callable[[str], None] = lambda encoding: None,
    *,
    mend_ends: bool = True,
) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, bytes of UTF-8 with the line end) of a file.

    A line longer than `limit` bytes is divided into pieces with the same number, at a space if there is one.

    Args:
        on_encoding: Function that is called with the encoding of the file before its first line.
        mend_ends: Whether a carriage return alone ends a line if the file has no other line ends, as on old Macintosh
            systems.
    """
    number = 1
    rest = b""
    with _faults(path, lambda: number), _reading(path, options, mend_ends=mend_ends) as (stream, position, encoding):
        on_encoding(encoding)
        while raw := stream.readline(limit):
            if number == 1 and not rest and raw.startswith(codecs.BOM_UTF8):
                raw = raw[3:]
            raw, rest = rest + raw, b""
            if raw.endswith(b"\n"):
                yield number, raw
                number += 1
                if tick is not None and number % _TICK_LINES == 0:
                    tick(position())
            else:
                if len(raw) >= limit:
                    # A cut at a blank, or before the last byte that begins a character of UTF-8, divides none.
                    begins = (at for at in range(len(raw) - 1, len(raw) - 5, -1) if raw[at] & 0xC0 != 0x80)
                    cut = raw.rfind(b" ") + 1 or next(begins, len(raw))
                    raw, rest = raw[:cut], raw[cut:]
                yield number, raw
        if rest:
            yield number, rest


def strict_lines(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """Yield the lines of a file with their line ends; one that cannot be decoded is a CorpusError."""
    lines = numbered_lines(path, CorpusOptions(encoding=encoding), limit=sys.maxsize)
    return (text for _, text in decoded(lines, path, encoding))


def decoded(lines: Iterable[tuple[int, bytes]], path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of lines, as `numbered_lines` gives them.

    Raises:
        CorpusError: If a line cannot be decoded.
    """
    decode = LineDecoder(encoding)
    for number, raw in lines:
        try:
            yield number, decode(raw)
        except UnicodeDecodeError as error:
            name = "UTF-8" if encoding == AUTO else encoding.upper()
            raise CorpusError(
                f"{path}:{number}: not {name} ({error.reason}): copy it again, convert it with iconv, or name its "
                "encoding, such as --encoding latin-1"
            ) from None


@contextmanager
def _faults(path: Path, line: Callable[[], int]) -> Iterator[None]:
    """Convert the errors of a damaged file into a CorpusError that names the line reached."""
    try:
        yield
    except CorpusError:
        raise
    except UnicodeError as error:
        raise CorpusError(
            f"{path}:{line()}: unreadable encoding ({error}): give the right one, for example --encoding utf-8"
        ) from None
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        if limit := limit_of(error):
            raise CorpusError(f"{path}:{line()}: the file cannot be read: {limit}") from None
        raise CorpusError(
            f"{path}:{line()}: the file is damaged or truncated ({error}): copy or download it again"
        ) from None
