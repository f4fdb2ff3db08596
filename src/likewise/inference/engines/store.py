"""The exports of models on disk. Nothing here imports torch, as that takes longer than a search.

Exports are in the cache, by the weights that they were made of, and never in a folder of the user's.
"""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from filelock import FileLock

from likewise import processor
from likewise.runs.cache import CacheError, cache_folder, made_in_cache
from likewise.runs.parts import checksum
from likewise.runs.whole_files import write_json, write_text

MAX_DIFFERENCE = 1e-5
"""How far a number of a float32 engine may be from torch's, relative to the vector's length."""
PACKAGES = {"openvino": "openvino", "onnx": "onnxruntime", "torch": "torch"}
TOKENIZER = "tokenizer.json"
_FORMAT = 3
"""Of the graphs: an export of another one is made again."""
_ABOUT, _CLOSE = "about.json", "close.json"


class Store:
    """The exports of a model on disk."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self._whole: set[tuple[str, str]] = set()
        self.home = cache_folder() / "engines" / fingerprint[:16]

    def folder(self, pair: tuple[str, str]) -> Path:
        """Return the folder of an export, which need not exist; bf16 runs that of float32."""
        return self.home / "-".join(pair).replace("bf16", "fp32")

    def about(self, pair: tuple[str, str]) -> dict[str, Any] | None:
        """Return the facts about an export; None if there is none, or it cannot be used.

        It may be damaged, or made of other weights or in an older format.
        """
        folder = self.folder(pair)
        try:
            found = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
            if found["model"] != self.fingerprint or found["format"] != _FORMAT:
                return None
            if pair not in self._whole:  # looked at once
                if any(checksum(folder / name) != known for name, known in found["files"].items()):
                    return None
                self._whole.add(pair)
            return found
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def same(self, engine: str) -> dict[str, Any] | None:
        """Return the facts about a float32 export if the installed release gives torch's vectors; otherwise None."""
        about = self.about((engine, "fp32")) or {}
        same = about.get("fidelity", {}).get("difference", 1.0) <= MAX_DIFFERENCE
        return about if same and about.get("release") == release(engine) else None

    def judged(self, pair: tuple[str, str]) -> dict[str, Any] | None:
        """Return the kept verdict on an engine and a precision, of this release and processor; None without one."""
        try:
            found = json.loads((self.home / _CLOSE).read_text(encoding="utf-8"))[_judge(pair)]
            return found if {"lowest", "sentences"} <= set(found) or "failed" in found else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def judge(self, pair: tuple[str, str], **found: Any) -> None:
        """Keep how near the vectors of a pair are to float32's, or why there are none, if the cache can be written."""
        with suppress(OSError, CacheError):
            path = made_in_cache(self.home) / _CLOSE
            with FileLock(self.home / ".judged.lock", timeout=5):
                try:
                    known = dict(json.loads(path.read_text(encoding="utf-8")))
                except (OSError, ValueError, TypeError):
                    known = {}
                write_json(path, known | {_judge(pair): found})

    def put(self, pair: tuple[str, str], write: Callable[[Path], None]) -> None:
        """Make an export: `write` fills a folder that replaces the older one, one process at a time."""
        made_in_cache(self.home)
        unfinished = self.home / ".unfinished"
        with FileLock(self.home / ".lock"):
            try:
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir()
                write(unfinished)
                files = {path.name: checksum(path) for path in sorted(unfinished.iterdir())}
                write_json(unfinished / _ABOUT, {"model": self.fingerprint, "format": _FORMAT, "files": files})
                shutil.rmtree(self.folder(pair), ignore_errors=True)
                unfinished.rename(self.folder(pair))
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)

    def put_tokens(self, pair: tuple[str, str], tokens: Any, at_least: int) -> None:
        """Add the tokenizer to an export that has another or none, so that `ExportedEncoder` can run it by itself."""
        if (self.about(pair) or {}).get("tokens", {}).get("hash") != tokens.hash:
            facts = {"pad": tokens.pad, "left": tokens.left, "special": tokens.special, "at_least": at_least}
            with suppress(OSError):  # a cache that can only be read
                write_text(self.folder(pair) / TOKENIZER, tokens.json)
                self.note(pair, tokens=facts | {"hash": tokens.hash})

    def note(self, pair: tuple[str, str], **about: Any) -> None:
        """Add to the facts about an export."""
        write_json(self.folder(pair) / _ABOUT, (self.about(pair) or {}) | about)


def _judge(pair: tuple[str, str]) -> str:
    """Return who judges: the vectors of a pair depend on the release and on the processor."""
    kinds = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16")
    there = [kind for kind in kinds if kind in processor.flags()]
    return f"{' '.join(pair)}, release {release(pair[0])}, {processor.name()} {' '.join(there)}"


@cache  # a look at the installed packages takes half a millisecond, a tenth of encoding a sentence
def release(engine: str) -> str:
    """Return the installed release of an engine; empty where there is none."""
    try:
        return version(PACKAGES[engine])
    except (KeyError, PackageNotFoundError):
        return ""
