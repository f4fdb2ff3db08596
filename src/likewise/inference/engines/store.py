"""The exports of models on disk. This module does not import torch, which takes longer than a search.

Exports are stored in the cache, by the hash of their weights, and never in a folder of the user.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from likewise import processor
from likewise.errors import counted
from likewise.inference.engines import onnx_engine, openvino_engine
from likewise.inference.engines.engine import EngineName, EngineVariant
from likewise.runs.cache import CacheError, cached, find_in_cache
from likewise.runs.whole_files import read_json, write_json, write_text

if TYPE_CHECKING:
    from likewise.inference.tokens import Tokens

MAX_DIFFERENCE = 1e-5
"""The largest difference of a float32 engine's numbers from torch's, relative to the vector's length."""
MIN_COSINE = 0.99
MIN_RANK = 0.985
"""The values that a lower precision must reach (docs/reference/defaults.md: where STS-B moved by less than 0.1)."""
MIN_CLOSE = 0.999
"""The lowest cosine of a text's two vectors that 'close' allows."""
ENOUGH = 32
"""The number of sentences that say something of ranks: with 6 pairs a correlation of 0.94 is one swap."""
MAKERS: dict[str, ModuleType] = {"openvino": openvino_engine, "onnx": onnx_engine}
"""The modules that make and run exports, by engine."""
PACKAGES = {"openvino": "openvino", "onnx": "onnxruntime", "torch": "torch"}
TOKENIZER = "tokenizer.json"
_FORMAT = 6
"""The format of the graphs: an export of another one is rebuilt."""
_KIND, _FACTS = "engines", "facts.json"


@dataclass(frozen=True)
class Fidelity:
    """The comparison of two sets of vectors of the same sentences."""

    cosine: float
    """Mean cosine of a sentence's two vectors."""
    lowest: float
    """The lowest of these."""
    rank: float
    """Spearman correlation of the cosines of all pairs of sentences; 1.0 where there are fewer than `ENOUGH`."""
    difference: float
    """Largest difference of two numbers, relative to the length of the vector."""
    sentences: int

    @property
    def same(self) -> bool:
        """True if they are the same up to rounding."""
        return self.difference <= MAX_DIFFERENCE

    @property
    def near(self) -> bool:
        """True if they are near enough for a lower precision."""
        return self.cosine >= MIN_COSINE and self.rank >= MIN_RANK

    @property
    def close(self) -> bool:
        """True if no vector is farther from the one in float32 than 'close' allows."""
        return self.lowest >= MIN_CLOSE

    def __str__(self) -> str:
        rank = f"rank correlation of pair similarities {self.rank:.4f}, " if self.sentences >= ENOUGH else ""
        cosines = f"mean cosine {self.cosine:.4f} (minimum {self.lowest:.4f}), "
        return f"{cosines}{rank}{counted(self.sentences, 'sentence')}"


class Store:
    """The exports of a model in the cache, with the results of their checks."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint

    def folder(self, pair: EngineVariant) -> Path | None:
        """Return the folder of an export; None if there is none, or it is damaged. bf16 runs the graph of float32."""
        return find_in_cache(_KIND, self._graph(pair))

    def put(self, pair: EngineVariant, write: Callable[[Path], object]) -> Path:
        """Return the folder of an export, which `write` fills unless there is one."""
        return cached(_KIND, self._graph(pair), write)

    def verdict(self, pair: EngineVariant) -> Fidelity | str | None:
        """Return how near the vectors of a pair are to float32's, or why there are none; None if it is unknown.

        The verdict belongs to the installed release and, for a lower precision, to this processor.
        """
        if (folder := find_in_cache(_KIND, self._verdict(pair))) is None:
            return None
        facts = read_json(folder / _FACTS)
        return str(facts["failed"]) if "failed" in facts else Fidelity(**facts)

    def keep(self, pair: EngineVariant, verdict: Fidelity | str) -> None:
        """Keep a verdict; the first one stays."""
        facts = {"failed": verdict} if isinstance(verdict, str) else asdict(verdict)
        with suppress(OSError, CacheError):  # a cache that can only be read
            cached(_KIND, self._verdict(pair), lambda folder: write_json(folder / _FACTS, facts))

    def is_same(self, engine: EngineName) -> bool:
        """Return whether there is a float32 export whose vectors are known to be torch's."""
        verdict = self.verdict((engine, "fp32")) if self.folder((engine, "fp32")) else None
        return isinstance(verdict, Fidelity) and verdict.same

    def tokenizer(self, digest: str) -> tuple[Path, dict[str, int]] | None:
        """Return the file of a tokenizer, and what else `export_encoder` needs to run an export; None without it."""
        folder = find_in_cache(_KIND, [self.fingerprint, "tokenizer", digest])
        return (folder / TOKENIZER, read_json(folder / _FACTS)) if folder else None

    def put_tokenizer(self, tokens: Tokens, at_least: int) -> None:
        """Store a tokenizer, if the cache is writable, so that `export_encoder` can run an export without the model."""

        def write(folder: Path) -> None:
            facts = {"pad": tokens.pad, "left": tokens.left, "special": tokens.special, "at_least": at_least}
            facts |= {"by_words": True} if tokens.by_words else {}
            write_text(folder / TOKENIZER, tokens.json)
            write_json(folder / _FACTS, facts)

        with suppress(OSError, CacheError):
            cached(_KIND, [self.fingerprint, "tokenizer", tokens.hash], write)

    def _graph(self, pair: EngineVariant) -> list[str | int]:
        engine, precision = pair
        return [self.fingerprint, engine, precision.replace("bf16", "fp32"), _FORMAT]

    def _verdict(self, pair: EngineVariant) -> list[str | bool]:
        """Return the key of a verdict: the vectors of a pair depend on the graph, the release and the processor."""
        conditions = [f"release {release(pair[0])}", *([] if pair[0] == "torch" else [f"graphs {_FORMAT}"])]
        if pair[1] != "fp32":
            kinds = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16")
            conditions += [processor.name(), *(kind for kind in kinds if kind in processor.flags())]
        return [self.fingerprint, "verdict", *pair, *conditions, True]


@cache  # a look at the installed packages takes half a millisecond, a tenth of encoding a sentence
def release(engine: str) -> str:
    """Return the installed release of an engine, or an empty string."""
    try:
        return version(PACKAGES[engine])
    except (KeyError, PackageNotFoundError):
        return ""
