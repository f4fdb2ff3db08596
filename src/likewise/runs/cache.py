"""The cache: files that likewise can make again, in one folder by kind."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from likewise.errors import LikewiseError

KINDS = {
    "bases": "encoders that were given loaded, and have no folder of their own",
    "corpus": "prepared corpora",
    "distilled": "word vectors distilled from encoders",
    "documents": "text of web pages, Word, PowerPoint and PDF files",
    "downloads": "files of `likewise data get`, as they were fetched",
    "engines": "exports of models to fast engines",
    "likelihoods": "how likely language models find sentences in contexts",
    "models": "bundled models, unpacked",
    "negation": "negations of sentences",
    "pipes": "text that was read from a pipe",
    "queries": "queries that language models wrote",
    "texts": "texts that were given in Python",
    "vectors": "texts and vectors of `likewise duplicates` and `topics`",
}
"""Folder of the cache to what it holds. Nothing else in it is counted or removed."""
_CORPUS = re.compile(r"[0-9a-f]{32}")


class CacheError(LikewiseError):
    """Raised if the cache cannot be written; the message names the cure."""


@dataclass(frozen=True)
class Kept:
    """The files of one kind in the cache: the kind, the places, the number of files and their bytes."""

    kind: str
    places: tuple[Path, ...]
    files: int
    bytes: int


def cache_folder() -> Path:
    """Return the folder of the cache: $LIKEWISE_CACHE if set, otherwise ~/.cache/likewise."""
    named = os.environ.get("LIKEWISE_CACHE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "likewise"


def made_in_cache(folder: Path) -> Path:
    """Make a folder of the cache if it is not there, and return it."""
    try:
        cache_folder().parent.mkdir(parents=True, exist_ok=True)
        # It holds text of files that others may not be allowed to read.
        cache_folder().mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
        reason = "Permission denied"
    except OSError as error:
        reason = error.strerror or str(error)
    raise CacheError(f"the cache {folder} cannot be written ({reason}): set LIKEWISE_CACHE to a folder that can")


def kept_in_cache() -> list[Kept]:
    """Return what is in the cache, by kind."""
    home, found = cache_folder(), []
    for kind in KINDS:
        places = [home / kind] if (home / kind).is_dir() else []
        if kind == "corpus" and home.is_dir():  # in $LIKEWISE_CACHE they have no folder of their own
            places += [path for path in home.iterdir() if _CORPUS.fullmatch(path.name) and path.is_dir()]
        files = [path for place in places for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
        if places:
            found.append(Kept(kind, tuple(places), len(files), sum(path.stat().st_size for path in files)))
    return found


def clear_cache(*kinds: str) -> list[Kept]:
    """Remove the given kinds from the cache, or all; return what was removed."""
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise CacheError(f"the cache holds no {unknown[0]}; there are {', '.join(KINDS)}")
    removed = [kept for kept in kept_in_cache() if not kinds or kept.kind in kinds]
    for kept in removed:
        for place in kept.places:
            shutil.rmtree(place)
    return removed
