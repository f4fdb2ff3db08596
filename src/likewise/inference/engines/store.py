"""Exports on disk: beside the model where that can be written, each with a note of the weights it was made of."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.inference.engines.engine import EngineName, EnginePrecision
from likewise.runs.cache import cache_folder
from likewise.runs.whole_files import write_json
from likewise.version import __version__

FOLDER = "engines"
_ABOUT = "about.json"
# Folders that are not the user's: an installed package, a download of the model hub.
_NOT_OURS = {"site-packages", "dist-packages", "snapshots"}


@dataclass(frozen=True)
class Store:
    """The exports of one model with one set of weights."""

    home: Path
    fingerprint: str

    @classmethod
    def of(cls, model_folder: Path | None, fingerprint: str) -> Store:
        """The store of a model: `engines/` in its folder, else in $LIKEWISE_CACHE or ~/.cache/likewise."""
        if model_folder is not None and os.access(model_folder, os.W_OK):
            folder = model_folder.resolve()
            if not _NOT_OURS & set(folder.parts):
                return cls(folder / FOLDER, fingerprint)
        return cls(cache_folder() / FOLDER / fingerprint[:16], fingerprint)

    def folder(self, engine: EngineName, precision: EnginePrecision) -> Path:
        """Where an export lies, or would."""
        return self.home / f"{engine}-{precision}"

    def about(self, engine: EngineName, precision: EnginePrecision) -> dict[str, Any] | None:
        """What is known of an export; None if there is none or it was made of other weights."""
        found = _read(self.folder(engine, precision) / _ABOUT)
        return found if found.get("model") == self.fingerprint else None

    def put(
        self,
        engine: EngineName,
        precision: EnginePrecision,
        write: Callable[[Path], None],
        about: dict[str, Any] | None = None,
    ) -> Path:
        """Make an export: `write` fills a folder beside, which then takes the place of an older one."""
        self.home.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=".", suffix=".part", dir=self.home))
        target = self.folder(engine, precision)
        try:
            write(unfinished)
            self._describe(unfinished, about or {})
            shutil.rmtree(target, ignore_errors=True)
            unfinished.rename(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return target

    def note(self, engine: EngineName, precision: EnginePrecision, about: dict[str, Any]) -> None:
        """Add to what is known of an export."""
        folder = self.folder(engine, precision)
        folder.mkdir(parents=True, exist_ok=True)
        self._describe(folder, (self.about(engine, precision) or {}) | about)

    def remembered(self, key: str) -> str | None:
        """Which engine was the fastest under a key, if that was measured with these weights."""
        found = _read(self.home / "fastest.json")
        return found.get(key) if found.get("model") == self.fingerprint else None

    def remember(self, key: str, engine: str) -> None:
        """Keep which engine was the fastest."""
        found = _read(self.home / "fastest.json")
        kept = found if found.get("model") == self.fingerprint else {}
        self.home.mkdir(parents=True, exist_ok=True)
        write_json(self.home / "fastest.json", kept | {"model": self.fingerprint, key: engine})

    def _describe(self, folder: Path, about: dict[str, Any]) -> None:
        write_json(folder / _ABOUT, {"model": self.fingerprint, "likewise": __version__} | about)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
