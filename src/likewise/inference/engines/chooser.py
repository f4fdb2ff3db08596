"""Which engine runs: the one asked for, or the fastest that keeps the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from likewise import processor
from likewise.inference.engines.bench import Bench
from likewise.inference.engines.engine import (
    CannotExport,
    Choice,
    Engine,
    EngineError,
    EngineMissing,
    EngineName,
    EnginePrecision,
    QuantisationRefused,
)
from likewise.inference.engines.exports import Exports, Pair, exports_of, release
from likewise.inference.engines.fidelity import Fidelity
from likewise.inference.engines.torch_engine import TorchEngine

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.inference.runner import Runner

_EXPORTING: tuple[EngineName, ...] = ("openvino", "onnx")

FEW = 256
"""Below so many texts 'auto' takes torch at once: to open an export takes about as long as to encode them."""
WORTH_SECONDS = 60.0
"""Above so many seconds of torch 'auto' makes exports: export, int8 and checks take 15 to 40 s together."""


@dataclass(frozen=True)
class Chosen:
    """The engine that runs, how near its vectors are (None: they are torch's), and what the user should know."""

    engine: Engine
    fidelity: Fidelity | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lower = self.fidelity is not None and self.engine.precision != "fp32"
        return f"{self.engine}, {self.fidelity}" if lower else str(self.engine)


def choose(model: SentenceTransformer, runner: Runner, choice: Choice, texts: Sequence[str], total: int) -> Chosen:
    """Take an engine.

    Args:
        model: what is to be run.
        runner: the model's.
        choice: what is asked for.
        texts: what is to be encoded, or the first of it, 1 or more: checks and int8's ranges are made on a sample.
        total: how many there are in all, about.

    Raises:
        EngineMissing: the engine asked for is not installed.
        QuantisationRefused: the precision asked for does not keep the vectors.
    """
    if choice.precision == "fp32" and (choice.engine == "torch" or _too_few(model, choice, total)):
        return Chosen(TorchEngine(model))  # the way of a single sentence: nothing is looked at
    exports, bench = exports_of(model), Bench(model, runner, texts)
    if choice.engine != "auto":
        wanted: list[Pair] = [(choice.engine, one) for one in _precisions(choice)]
        return _first(exports, bench, wanted, strict=choice.precision != "auto")
    given = choice.precision in ("bf16", "int8")  # asked for by name: whatever it costs
    if not given and _too_few(model, choice, total):
        return _first(exports, bench, _torch_pairs(choice.precision), strict=False)
    installed = "/".join(f"{name} {release(name)}" for name in _EXPORTING if release(name))
    key = f"{processor.name()}, {torch.get_num_threads()} threads, {installed or 'torch alone'}, {choice.precision}"
    known = exports.store.remembered(key)
    if known is not None:
        # Weights and machine are those of the measurement; the texts may be others, so its vectors are checked.
        engine, precision = known.split()
        return _first(exports, bench, [(engine, precision)], strict=given)  # type: ignore[list-item]
    if not given and bench.torch_seconds(total) < WORTH_SECONDS:
        return _first(exports, bench, _torch_pairs(choice.precision), strict=False)
    found = _fastest(exports, bench, choice.precision)
    exports.store.remember(key, str(found.engine))
    return found


def _too_few(model: SentenceTransformer, choice: Choice, total: int) -> bool:
    return choice.engine == "auto" and (total < FEW or model.device.type != "cpu")


def _precisions(choice: Choice) -> list[EnginePrecision]:
    """Those of an engine to try, the fastest first."""
    if choice.precision != "auto":
        return [choice.precision]
    found: list[EnginePrecision] = []
    # OpenVINO's int8 is no faster than its float32 without VNNI; that of ONNX Runtime is.
    if choice.engine == "onnx" or (choice.engine == "openvino" and processor.has_int8()):
        found.append("int8")
    if choice.engine != "onnx" and processor.has_bf16():
        found.append("bf16")
    return [*found, "fp32"]


def _torch_pairs(precision: EnginePrecision) -> list[Pair]:
    return [("torch", one) for one in _precisions(Choice("torch", "auto")) if precision in ("auto", one)]


def _first(exports: Exports, bench: Bench, pairs: Sequence[Pair], strict: bool) -> Chosen:
    """The first that keeps the vectors; torch in float32, with a note, if none does."""
    notes: list[str] = []
    for engine, precision in pairs:
        try:
            ready = exports.ready((engine, precision), bench)
            return Chosen(ready, exports.checked[engine, precision], tuple(notes))
        except QuantisationRefused as refusal:
            if strict:
                raise
            notes.append(str(refusal))
        except CannotExport as reason:
            notes.append(f"The engine {engine} ({precision}) cannot be used: {reason}. torch runs in its place.")
    return Chosen(TorchEngine(exports.model), None, tuple(notes))


def _fastest(exports: Exports, bench: Bench, precision: EnginePrecision) -> Chosen:
    """The fastest of what is installed, keeps the vectors and has the precision, by the clock.

    Raises:
        QuantisationRefused: bf16 or int8 was asked for, and nothing here gives it.
    """
    timed: list[tuple[float, Chosen]] = []
    if precision in ("auto", "fp32"):
        timed.append((bench.reference_seconds, Chosen(TorchEngine(exports.model))))
    notes: list[str] = []
    for pair in _pairs(precision):
        try:
            engine = exports.ready(pair, bench)
            timed.append((bench.measure(engine)[1], Chosen(engine, exports.checked[pair])))
        except EngineMissing as reason:
            if precision in ("bf16", "int8"):
                notes.append(str(reason))
        except EngineError as reason:
            notes.append(f"{' '.join(pair)}: {reason}")
    if not timed:
        raise QuantisationRefused(f"No engine here gives {precision}. {' '.join(notes)}")
    best = min(timed, key=lambda one: one[0])[1]
    return Chosen(best.engine, best.fidelity, tuple(notes))


def _pairs(precision: EnginePrecision) -> list[Pair]:
    """What to try: every engine that has the precision, or those that are fast here."""
    engines: tuple[EngineName, ...] = ("torch", *_EXPORTING)
    if precision == "bf16":
        return [("torch", "bf16"), ("openvino", "bf16")]
    if precision == "int8":
        return [(engine, "int8") for engine in _EXPORTING]
    return [
        (engine, one)
        for engine in engines
        for one in _precisions(Choice(engine, "auto"))
        if precision in ("auto", one) and (engine, one) != ("torch", "fp32")
    ]
