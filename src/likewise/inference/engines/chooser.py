"""The choice of the engine: the requested one, or the fastest one that preserves the vectors.

What is fast follows from the processor and was measured (benchmarks/README.md): int8 where the processor multiplies
it, bfloat16 where it has that, else the exported graphs where there is AVX2, and torch. An export takes 15 to 40 s, so
that 'auto' makes one only for a long job.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sentence_transformers import SentenceTransformer

from likewise import processor
from likewise.errors import MissingExtraError
from likewise.inference.engines.engine import (
    CannotExport,
    Choice,
    Engine,
    EnginePrecision,
    EngineVariant,
    QuantisationRefused,
    TorchEngine,
)
from likewise.inference.engines.exports import exports_of, release
from likewise.inference.engines.fidelity import Fidelity, Sample

FEW = 256
"""For fewer texts 'auto' opens no export, which takes about as long as encoding them; one that is open is used."""
LONG = 5e12
"""Operations from which 'auto' makes exports: about a minute of two cores with AVX2."""


@dataclass(frozen=True)
class Chosen:
    """The chosen engine, the fidelity of its vectors (None for torch), and notes for the user."""

    engine: Engine
    fidelity: Fidelity | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lower = self.fidelity is not None and self.engine.precision != "fp32"
        return f"{self.engine}, {self.fidelity}" if lower else str(self.engine)


def choose(model: SentenceTransformer, choice: Choice, texts: Sequence[str], total: int) -> Chosen:
    """Choose an engine.

    Args:
        model: one that the fast path takes (see `fits`).
        texts: what is to be encoded, or the first of it, 1 or more: checks and int8's ranges are made on a sample.
        total: how many there are in all, about.
    """
    auto = choice.engine == "auto"
    on_cpu = model.device.type == "cpu"
    few = auto and (total < FEW or not on_cpu)
    if choice.precision == "fp32" and (choice.engine == "torch" or few):
        return Chosen(TorchEngine(model))  # the way of a single sentence: nothing is looked at
    exports, sample = exports_of(model), Sample(model, texts)
    named = choice.precision in ("bf16", "int8")
    pairs: list[EngineVariant] = [(choice.engine, one) for one in _precisions(choice)]
    if auto:
        pairs = [pair for pair in fast_pairs(choice.precision) if pair[0] == "torch" or release(pair[0])]
        if not named and (few or sample.operations(total) < LONG):
            there = exports.checked.__contains__ if few else exports.has
            pairs = [pair for pair in pairs if pair[0] == "torch" or (on_cpu and there(pair))]
    notes: list[str] = []
    for pair in pairs:
        if pair == ("torch", "fp32"):
            break
        try:
            engine = exports.ready(pair, sample)
            return Chosen(engine, exports.checked[pair], tuple(notes))
        except (MissingExtraError, QuantisationRefused) as reason:
            if not auto and (named or isinstance(reason, MissingExtraError)):
                raise
            notes.append(str(reason))
        except CannotExport as reason:
            instead = "" if auto else " torch runs instead."
            notes.append(f"The engine {pair[0]} ({pair[1]}) cannot be used: {reason}.{instead}")
    if named and auto:
        raise QuantisationRefused(f"No engine here gives {choice.precision}. {' '.join(notes)}")
    return Chosen(TorchEngine(model), None, tuple(notes))


def fast_pairs(precision: EnginePrecision) -> list[EngineVariant]:
    """Return the engines and precisions to try on this processor, the fastest first."""
    avx2 = bool(processor.flags() & {"avx2", "asimd"})
    found: list[EngineVariant] = []
    if precision == "int8" or (precision == "auto" and avx2):
        # Without VNNI the int8 of ONNX Runtime is faster than its float32, and that of OpenVINO is not.
        vnni = processor.has_int8()
        first: list[EngineVariant] = [("openvino", "int8"), ("onnx", "int8")]
        found += first if vnni else first[::-1] if precision == "int8" else first[1:]
    if precision == "bf16" or (precision == "auto" and processor.has_bf16()):
        found += [("torch", "bf16"), ("openvino", "bf16")]
    if precision in ("auto", "fp32"):
        found += [("onnx", "fp32"), ("openvino", "fp32")] if avx2 else []
        found.append(("torch", "fp32"))
    return found


def _precisions(choice: Choice) -> list[EnginePrecision]:
    """Return the precisions to try on the requested engine, the fastest first."""
    if choice.precision != "auto":
        return [choice.precision]
    found: list[EnginePrecision] = []
    if choice.engine == "onnx" or (choice.engine == "openvino" and processor.has_int8()):
        found.append("int8")
    if choice.engine != "onnx" and processor.has_bf16():
        found.append("bf16")
    return [*found, "fp32"]
