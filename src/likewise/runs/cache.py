"""The cache: files that likewise can rebuild, in one folder per kind, and the function that builds them."""

import json
import os
import shutil
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

try:
    import fcntl
except ImportError:  # not on Windows, where files in use cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

from likewise.errors import LikewiseError
from likewise.runs.whole_files import checksum, give_usual_mode, is_full_disk, parse_json, read_json, write_json

KINDS = {
    "bases": "loaded encoders that have no folder of their own",
    "corpus": "prepared corpora",
    "distilled": "word vectors distilled from encoders",
    "documents": "text of web pages, Word, PowerPoint and PDF files",
    "engines": "exports of models for fast engines",
    "hub": "rows of data sets from the hub (hf:NAME)",
    "likelihoods": "likelihoods of sentences in contexts by language models",
    "facts": "properties of models, known without opening them",
    "models": "bundled models, unpacked",
    "negation": "negations of sentences",
    "pipes": "text read from pipes",
    "queries": "queries written by language models",
    "stages": "preparations of a corpus by recipes: negations, target vectors, and models that are trained first",
    "texts": "texts passed in Python",
    "vectors": "texts and vectors of `likewise duplicates`",
}
"""Folder of the cache to what it holds. Nothing else in it is counted or removed."""
_SCHEMA = "CREATE TABLE IF NOT EXISTS rows (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID"
LOCKS, WHOLE = ".locks", ".whole.json"
"""Names in the folder of a kind that are no part of what it holds."""
_USED, _RESUMES = "in-use", ".resumes"
IN_USE: dict[Path, int] = {}
"""The kinds that this process uses, by their folder: the lock file of each, held until the process ends."""
USING = threading.Lock()


class CacheError(LikewiseError):
    """Raised if the cache cannot be written; the message names the cure."""


def cache_folder() -> Path:
    """Return the folder of the cache: $LIKEWISE_CACHE if set, otherwise ~/.cache/likewise.

    Raises:
        CacheError: If neither is set.
    """
    if named := os.environ.get("LIKEWISE_CACHE"):
        return Path(named).expanduser()
    try:
        return Path.home() / ".cache" / "likewise"
    except RuntimeError:  # no HOME, and no entry of this user in the list of users, as in some containers
        raise CacheError("this user has no home folder: set LIKEWISE_CACHE to a writable folder") from None


def made_in_cache(kind: str) -> Path:
    """Make the folder of a kind if it is not there, and return it."""
    place = cache_folder() / kind
    try:
        cache_folder().parent.mkdir(parents=True, exist_ok=True)
        # It holds text of files that others may not be allowed to read.
        cache_folder().mkdir(mode=0o700, exist_ok=True)
        place.mkdir(exist_ok=True)
        hold_kind(place)
        if os.access(place, os.W_OK):
            return place
        reason = "Permission denied"
    except OSError as error:
        reason = error.strerror or str(error)
    raise CacheError(f"the cache {place} cannot be written ({reason}): set LIKEWISE_CACHE to a writable folder")


def cached(kind: str, key: object, make: Callable[[Path], object], *, resumes: bool = False) -> Path:
    """Return the cache folder of a key, which `make` fills unless an earlier call has done so.

    One process fills it at a time, and others wait for it. It becomes visible when it is complete, and is rebuilt if
    its files have been modified or truncated. Everything that can be recomputed is stored in this way.

    Args:
        kind: Name in `KINDS`.
        key: Everything that determines the content, as a list of texts and numbers.
        make: Function that fills an empty folder.
        resumes: Whether files that `make` wrote before an interruption or an error remain for the next call.

    Raises:
        CacheError: If the cache cannot be written, or the disk is full.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     os.environ["LIKEWISE_CACHE"] = home
    ...     kept = cached("pipes", ["three", 3], lambda folder: (folder / "word.txt").write_text("three"))
    ...     (kept / "word.txt").read_text(), kept == cached("pipes", ["three", 3], print)
    ('three', True)
    >>> del os.environ["LIKEWISE_CACHE"]
    """
    with being_made(kind, key, resumes=resumes) as (final, work):
        if work:
            make(work)
    return final


@contextmanager
def in_cache(kind: str) -> Iterator[Path]:
    """Provide the folder of a kind, for files that are written there.

    Raises:
        CacheError: If the cache cannot be written, or the disk is full.
    """
    try:
        yield made_in_cache(kind)
    except Exception as error:
        if is_full_disk(error) and not isinstance(error, CacheError):
            raise CacheError(
                f"the cache {cache_folder()}: the disk is full, and {KINDS[kind]} are stored there. Free some space, "
                f"or set "
                "LIKEWISE_CACHE to a folder on another disk"
            ) from error
        raise


@contextmanager
def being_made(kind: str, key: object, *, resumes: bool = False) -> Iterator[tuple[Path, Path | None]]:
    """Yield the cache folder of a key, and the folder to fill in a `with` block, None if it is complete.

    This is `cached` for a result that several processes compute, one of which calls this function. See `cached` for the
    arguments and errors.
    """
    if folder := find_in_cache(kind, key):
        yield folder, None
        return
    final = _place(kind, key)
    work = final.with_name(f".{final.name}{_RESUMES if resumes else ''}")
    with in_cache(kind), FileLock(final.parent / LOCKS / final.name):
        if _is_whole(final):  # another process has made it meanwhile
            yield final, None
            return
        _remove_unfinished(final.parent)
        try:
            work.mkdir(exist_ok=True)
            yield final, work
            files = {path.relative_to(work).as_posix(): path for path in work.rglob("*") if path.is_file()}
            give_usual_mode(*files.values())
            write_json(work / WHOLE, {name: [*_state(path), checksum(path)] for name, path in sorted(files.items())})
            shutil.rmtree(final, ignore_errors=True)
            work.rename(final)
        except BaseException:
            if not resumes:
                shutil.rmtree(work, ignore_errors=True)
            raise


class CachedRows:
    """Rows of the cache by their keys, for results that are computed row by row, such as negations of sentences.

    The rows of a kind and a key, as in `cached`, are stored in a SQLite file, which several processes can use at once.
    A row has a checksum, and a damaged row is recomputed. A damaged file is replaced. If a file cannot be written, it
    is not used, and the rows are recomputed.

    >>> rows = CachedRows("negation", ["an", "example"])
    >>> rows.put({b"one": ["A", None]})
    >>> rows.get([b"one", b"two"])
    {b'one': ['A', None]}
    >>> rows.close()
    """

    def __init__(self, kind: str, key: object) -> None:
        self.path = _place(kind, key).with_suffix(".sqlite")
        self._base = sqlite3.connect(":memory:")
        try:
            made_in_cache(kind)
            self._base = self._opened()
        except (CacheError, sqlite3.OperationalError):  # it cannot be written
            self._base.execute(_SCHEMA)
        except sqlite3.DatabaseError:
            self.path.unlink(missing_ok=True)
            self._base = self._opened()

    def _opened(self) -> sqlite3.Connection:
        base = sqlite3.connect(self.path, timeout=30)
        base.text_factory = bytes
        # A crash may lose the last moments, which only costs making them again.
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=OFF", _SCHEMA):
            base.execute(statement)
        return base

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Any]:
        """Return the values of the existing keys."""
        values: dict[bytes, Any] = {}
        for key in keys:
            # A damaged page or text is an error, as is a closed file; what is behind it is rebuilt.
            with suppress(sqlite3.Error, ValueError, AttributeError):
                if row := self._base.execute("SELECT value FROM rows WHERE key = ?", (key,)).fetchone():
                    check, _, value = row[0].partition(b" ")
                    if int(check, 16) == zlib.crc32(value):
                        values[key] = parse_json(value.decode("utf-8", "surrogatepass"))
        return values

    def put(self, rows: Mapping[bytes, object]) -> None:
        """Add rows, whose values are plain."""
        said = {
            key: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") for key, value in rows.items()
        }
        written = [(key, b"%08x %b" % (zlib.crc32(value), value)) for key, value in said.items()]
        with suppress(sqlite3.Error), self._base:
            self._base.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", written)

    def close(self) -> None:
        """Close the file; later look-ups find nothing."""
        self._base.close()


def _remove_unfinished(home: Path) -> None:
    """Remove what killed calls have left and none resumes; what a living one is making is locked."""
    for work in home.glob(".*"):
        if work.name != LOCKS and work.suffix != _RESUMES:
            with suppress(Timeout, OSError), FileLock(home / LOCKS / work.name[1:], timeout=0):
                shutil.rmtree(work, ignore_errors=True)


def find_in_cache(kind: str, key: object) -> Path | None:
    """Return the folder that the cache has for a key, see `cached`; None if there is none, or if it is not whole."""
    place = _place(kind, key)
    if not place.is_dir():
        return None
    hold_kind(place.parent)
    return place if _is_whole(place) else None


def hold_kind(place: Path) -> None:
    """Lock the folder of a kind until this process ends, so that `clear_cache` does not remove its files."""
    with USING:
        while fcntl is not None and place not in IN_USE:
            try:
                (place / LOCKS).mkdir(exist_ok=True)
                handle = os.open(place / LOCKS / _USED, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
                fcntl.flock(handle, fcntl.LOCK_SH)
            except FileNotFoundError:  # cleared at this moment
                place.mkdir(exist_ok=True)
                continue
            except OSError:  # a cache that can only be read, or a file system without locks
                return
            if os.fstat(handle).st_nlink:
                IN_USE[place] = handle
            else:  # cleared while this process waited
                os.close(handle)


def _place(kind: str, key: object) -> Path:
    said = json.dumps(key, sort_keys=True)
    return cache_folder() / kind / blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _state(path: Path) -> tuple[int, int]:
    """Return the size and the time of a file: while they are unchanged since its creation, its content is not read."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _is_whole(folder: Path) -> bool:
    try:
        written = read_json(folder / WHOLE)
        now = {name: [*_state(folder / name), known] for name, (_, _, known) in written.items()}
        changed = [name for name in now if now[name] != written[name]]
        if any(now[name][0] != written[name][0] or checksum(folder / name) != now[name][2] for name in changed):
            return False
    except (OSError, ValueError, TypeError, AttributeError):
        return False
    if changed:  # copied, with other times: not to be read again
        with suppress(OSError):
            write_json(folder / WHOLE, now)
    return True


def data_folder() -> Path:
    """Return the data folder: LIKEWISE_DATA if set (its parent, if it names `senteval` itself), or in the cache's."""
    named = os.environ.get("LIKEWISE_DATA")
    if not named:
        return cache_folder() / "data"
    folder = Path(named).expanduser()
    return folder.parent if folder.name == "senteval" else folder
