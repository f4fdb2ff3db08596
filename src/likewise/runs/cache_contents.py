"""The content of the cache by kind, and its removal."""

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from likewise.runs.cache import IN_USE, KINDS, LOCKS, USING, WHOLE, CacheError, cache_folder, fcntl, hold_kind

_CLEARED = ".cleared-"


@dataclass(frozen=True)
class CacheEntry:
    """The files of one kind in the cache: the kind, the folder, the number of files and their bytes."""

    kind: str
    place: Path
    files: int
    bytes: int


def cache_entries() -> list[CacheEntry]:
    """List the contents of the cache, by kind."""
    listed = []
    for kind in KINDS:
        place = cache_folder() / kind
        sizes = []
        for folder, folders, files in os.walk(place):
            folders[:] = [name for name in folders if name != LOCKS]
            for path in (Path(folder, name) for name in files if name != WHOLE):
                with suppress(FileNotFoundError):  # removed meanwhile
                    sizes += [path.lstat().st_size] if not path.is_symlink() else []
        if place.is_dir():
            listed.append(CacheEntry(kind, place, len(sizes), sum(sizes)))
    return listed


def clear_cache(*kinds: str) -> list[CacheEntry]:
    """Remove the given kinds, or all kinds, from the cache; return the removed entries.

    A kind that another process uses is not removed.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise CacheError(f"the cache does not contain {unknown[0]}; choose one of {', '.join(KINDS)}")
    return [entry for entry in cache_entries() if (not kinds or entry.kind in kinds) and _cleared(entry.place)]


def _cleared(place: Path) -> bool:
    """Remove the folder of a kind unless another process holds it; return whether it was removed."""
    home = place.parent
    for rest in home.glob(f"{_CLEARED}*"):  # of a clearing that was killed
        shutil.rmtree(rest, ignore_errors=True)
    was_in_use = place in IN_USE
    hold_kind(place)
    with USING:
        handle = IN_USE.get(place)
        try:
            if handle is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            assert handle is not None
            fcntl.flock(handle, fcntl.LOCK_SH)
            if not was_in_use:
                os.close(IN_USE.pop(place))
            return False
        try:  # under another name first: a process that begins now makes the folder anew
            shutil.rmtree(place.rename(tempfile.mkdtemp(prefix=_CLEARED, dir=home)))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise CacheError(f"{place} cannot be removed ({error.strerror}): check its permissions") from None
        finally:
            if handle is not None:
                os.close(IN_USE.pop(place))
    return True
