"""A cache of negations on disk, so that a second run does not parse again."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from types import TracebackType

from likewise.augment.negation.rules import Negation
from likewise.runs.cache import cache_folder

_SCHEMA = """CREATE TABLE IF NOT EXISTS negations
    (key BLOB PRIMARY KEY, negation TEXT, reason TEXT, rule TEXT) WITHOUT ROWID"""
# SQLite takes at most 999 variables in its older builds.
_AT_A_TIME = 900


def _key(sentence: str) -> bytes:
    return blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class NegationCache:
    """A cache of negations by sentence: one SQLite file for each model, model version and rules version.

    A changed rule or model opens another file, so nothing stale is ever read. A file that cannot be opened or
    written is passed over: the cache saves time and nothing depends on it.
    """

    def __init__(self, identity: str, folder: Path | None = None) -> None:
        self.hits = 0
        self._base: sqlite3.Connection | None = None
        folder = (cache_folder() if folder is None else folder) / "negation"
        self.path = folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', identity)}.sqlite"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(self.path, timeout=30)
            # A crash may lose the last moments of the cache, which only costs parsing them again.
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=OFF")
            self._base.execute(_SCHEMA)
        except (OSError, sqlite3.Error):
            self.close()

    def get(self, sentences: Sequence[str]) -> dict[str, Negation]:
        """Return the cached negations of the given sentences."""
        if self._base is None:
            return {}
        by_key = {_key(sentence): sentence for sentence in sentences}
        keys = list(by_key)
        found: dict[str, Negation] = {}
        try:
            for start in range(0, len(keys), _AT_A_TIME):
                part = keys[start : start + _AT_A_TIME]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, negation, reason, rule FROM negations WHERE key IN ({marks})"
                for key, negation, reason, rule in self._base.execute(query, part):
                    sentence = by_key[bytes(key)]
                    found[sentence] = Negation(sentence, negation, reason, rule)
        except sqlite3.Error:
            return {}
        self.hits += len(found)
        return found

    def put(self, negations: Iterable[Negation]) -> None:
        """Add negations to the cache."""
        if self._base is None:
            return
        rows = [(_key(n.sentence), n.negation, n.reason, n.rule) for n in negations]
        try:
            with self._base:
                self._base.executemany("INSERT OR REPLACE INTO negations VALUES (?, ?, ?, ?)", rows)
        except sqlite3.Error:
            self.close()

    def close(self) -> None:
        """Close the file; later look-ups find nothing."""
        if self._base is not None:
            self._base.close()
            self._base = None

    def __enter__(self) -> NegationCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
