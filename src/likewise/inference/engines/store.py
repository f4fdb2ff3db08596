"""The exports of models on disk. Nothing here imports torch, as that takes longer than a search.

Exports are in the cache, by the weights that they were made of, and never in a folder of the user's.
"""

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from likewise import processor
from likewise.runs.cache import CacheError, cached, found_in_cache
from likewise.runs.whole_files import read_json, write_json, write_text

MAX_DIFFERENCE = 1e-5
"""How far a number of a float32 engine may be from torch's, relative to the vector's length."""
PACKAGES = {"openvino": "openvino", "onnx": "onnxruntime", "torch": "torch"}
TOKENIZER = "tokenizer.json"
_FORMAT = 4
"""Of the graphs: an export of another one is made again."""
_KIND, _FACTS = "engines", "facts.json"


class Store:
    """The exports of a model in the cache, and what is known of their vectors."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint

    def folder(self, pair: tuple[str, str]) -> Path | None:
        """Return the folder of an export; None if there is none, or it is damaged. bf16 runs the graph of float32."""
        return found_in_cache(_KIND, self._graph(pair))

    def put(self, pair: tuple[str, str], write: Callable[[Path], object], *, again: bool = False) -> Path:
        """Return the folder of an export, which `write` fills unless there is one.

        Args:
            again: make it even then.
        """
        if again and (older := self.folder(pair)):
            shutil.rmtree(older)
        return cached(_KIND, self._graph(pair), write)

    def same(self, engine: str) -> dict[str, Any] | None:
        """Return the fidelity of a float32 export if the installed release gives torch's vectors; otherwise None."""
        if self.folder((engine, "fp32")) is None:
            return None
        found = self._known("vectors", engine, _made_by(engine), True)
        found = found or self._known("vectors", engine, _made_by(engine), False)
        return found if found and found["difference"] <= MAX_DIFFERENCE else None

    def note(self, engine: str, fidelity: Mapping[str, Any], enough: bool) -> None:
        """Keep the fidelity of a float32 export by the installed release.

        Args:
            enough: it was measured on enough texts, and need not be measured again.
        """
        self._keep(fidelity, "vectors", engine, _made_by(engine), enough)

    def judged(self, pair: tuple[str, str]) -> dict[str, Any] | None:
        """Return the kept verdict on an engine and a precision, of this release and processor; None without one."""
        return self._known(_judge(pair))

    def judge(self, pair: tuple[str, str], **found: Any) -> None:
        """Keep how near the vectors of a pair are to float32's, or why there are none; the first verdict stays."""
        self._keep(found, _judge(pair))

    def tokenizer(self, digest: str) -> tuple[Path, dict[str, Any]] | None:
        """Return the file of a tokenizer, and what else `export_encoder` needs to run an export; None without it."""
        found = found_in_cache(_KIND, [self.fingerprint, "tokenizer", digest])
        return (found / TOKENIZER, read_json(found / _FACTS)) if found else None

    def put_tokenizer(self, tokens: Any, at_least: int) -> None:
        """Keep a tokenizer, so that `export_encoder` can run an export by itself, if the cache can be written."""

        def write(folder: Path) -> None:
            facts = {"pad": tokens.pad, "left": tokens.left, "special": tokens.special, "at_least": at_least}
            write_text(folder / TOKENIZER, tokens.json)
            write_json(folder / _FACTS, facts)

        with suppress(OSError, CacheError):
            cached(_KIND, [self.fingerprint, "tokenizer", tokens.hash], write)

    def _graph(self, pair: tuple[str, str]) -> list[Any]:
        engine, precision = pair
        return [self.fingerprint, engine, precision.replace("bf16", "fp32"), _FORMAT]

    def _known(self, *key: Any) -> dict[str, Any] | None:
        found = found_in_cache(_KIND, [self.fingerprint, *key])
        return read_json(found / _FACTS) if found else None

    def _keep(self, facts: Mapping[str, Any], *key: Any) -> None:
        with suppress(OSError, CacheError):  # a cache that can only be read
            cached(_KIND, [self.fingerprint, *key], lambda folder: write_json(folder / _FACTS, dict(facts)))


def _made_by(engine: str) -> str:
    """Name the release and the form of the graph, on which the vectors of a float32 export depend."""
    return f"{release(engine)}, graphs {_FORMAT}"


def _judge(pair: tuple[str, str]) -> str:
    """Return who judges: the vectors of a pair depend on the graph, the release and the processor."""
    kinds = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16")
    there = [kind for kind in kinds if kind in processor.flags()]
    graphs = "" if pair[0] == "torch" else f"graphs {_FORMAT}, "
    return f"{' '.join(pair)}, {graphs}release {release(pair[0])}, {processor.name()} {' '.join(there)}"


@cache  # a look at the installed packages takes half a millisecond, a tenth of encoding a sentence
def release(engine: str) -> str:
    """Return the installed release of an engine; empty where there is none."""
    try:
        return version(PACKAGES[engine])
    except (KeyError, PackageNotFoundError):
        return ""
