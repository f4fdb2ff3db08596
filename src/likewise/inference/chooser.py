"""The exports of a model, and the choice of its engine: the requested one, or the fastest that preserves the vectors.

What is fast follows from the processor and was measured (benchmarks/README.md): int8 where the processor multiplies
it, bfloat16 where it has that, else the exported graphs where there is AVX2, and torch. An export takes 15 to 40 s, so
that 'auto' makes one only for a long job.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from likewise import processor
from likewise.errors import MissingExtraError
from likewise.inference.engines import onnx_engine, openvino_engine
from likewise.inference.engines.engine import (
    CannotExport,
    Engine,
    EngineChoice,
    EnginePrecision,
    EngineVariant,
    QuantisationRefused,
    TorchEngine,
)
from likewise.inference.engines.graph import check_exportable, fingerprint, least_tokens, mark
from likewise.inference.engines.store import Store, release
from likewise.inference.fidelity import (
    ENOUGH,
    MAX_DIFFERENCE,
    MIN_CLOSE,
    MIN_COSINE,
    MIN_RANK,
    Fidelity,
    Sample,
    sample_of,
)
from likewise.inference.per_model import PerModel
from likewise.inference.tokens import FEW

MAKERS: dict[str, Any] = {"openvino": openvino_engine, "onnx": onnx_engine}
LONG = 5e12
"""Operations from which 'auto' makes exports: about a minute of two cores with AVX2."""
LONG_IN_BF16 = 1e14
"""The same where torch is in bfloat16 without an export, which is then a fifth faster: some minutes of one core."""


class Exports:
    """The engines of a model with its present weights; the model itself is not held, but comes with each sample."""

    def __init__(self, model: SentenceTransformer) -> None:
        self.store = Store(fingerprint(model))
        self._open: dict[EngineVariant, Engine] = {}
        self.checked: dict[EngineVariant, Fidelity] = {}
        self._same = False

    def has(self, pair: EngineVariant) -> bool:
        """Return whether an engine can run without making an export first."""
        return pair[0] == "torch" or self.store.folder(pair) is not None

    def is_there(self, pair: EngineVariant) -> bool:
        """Return whether an engine is installed and has a kept export: in float32, one that gives torch's vectors."""
        if not release(pair[0]):
            return False
        return bool(self.store.same(pair[0])) if pair[1] == "fp32" else self.has(pair)

    def any_same(self) -> bool:
        """Return whether there is a float32 export with torch's vectors already."""
        self._same = self._same or any((name, "fp32") in self._open or self.store.same(name) for name in MAKERS)
        return self._same

    def open(self, pair: EngineVariant, model: SentenceTransformer) -> Engine:
        """Return the engine of a kept export, or of torch; the caller knows that its vectors will do."""
        return self._opened(pair, Sample(model, []))

    def prepare(self, pair: EngineVariant, sample: Sample) -> None:
        """Make an export for later, and judge its vectors by a sample of 1 or more texts."""
        try:
            if pair[1] == "fp32":
                self.ready(pair, sample)
            else:
                self.keep(pair, sample.fidelity(self._opened(pair, sample)))
        except CannotExport as reason:
            self.store.judge(pair, failed=str(reason))

    def keep(self, pair: EngineVariant, found: Fidelity) -> dict[str, Any]:
        """Return how near the vectors of a pair are to float32's, as facts that are kept if the texts are enough."""
        facts = asdict(found) | {"date": time.strftime("%Y-%m-%d")}
        if found.sentences >= ENOUGH:
            self.store.judge(pair, **facts)
        return facts

    def ready(self, pair: EngineVariant, sample: Sample, close: bool = False) -> Engine:
        """Return an engine that preserves the vectors.

        Args:
            close: whether a lower precision must be as near as 'close' allows.

        Raises:
            CannotExport: it does not take the model, or its float32 differs from torch's.
            QuantisationRefused: its lower precision differs too much.
        """
        engine, precision = pair
        known = self.checked.get(pair)
        if known is None and close and precision != "fp32" and (about := self.store.judged(pair)):
            if "failed" in about:
                raise CannotExport(str(about["failed"]))
            with suppress(KeyError):  # of a file that was written by hand
                known = Fidelity(**{one.name: about[one.name] for one in fields(Fidelity)})
        if known is None and precision == "fp32" and (about := self.store.same(engine)):
            known = Fidelity(**about)  # of a lower precision it depends on the texts too
        if known is None or known.sentences < ENOUGH <= len(sample.texts):
            older = self.has(pair)
            known = sample.fidelity(self._opened(pair, sample))
            if older and precision == "int8" and not known.near:
                # Its ranges were taken from another corpus: take them from this one.
                self._open.pop(pair)
                self._make(pair, sample, again=True)
                known = sample.fidelity(self._opened(pair, sample))
            if precision == "fp32":
                self.store.note(engine, asdict(known), known.sentences >= ENOUGH)
            if close and precision != "fp32":
                self.keep(pair, known)
            if precision == "fp32" and not known.same:
                limit = f"not {MAX_DIFFERENCE:.0e} at most"
                raise CannotExport(f"its vectors differ from torch's by {known.difference:.1e} and {limit}")
            if precision != "fp32" and not close and not known.near:
                raise QuantisationRefused(
                    f"{engine} {precision} does not keep the vectors: {known}; {MIN_COSINE} and {MIN_RANK} are needed. "
                    "Take --precision fp32."
                )
        self.checked[pair] = known
        if close and precision != "fp32" and not known.close:
            raise QuantisationRefused(f"{engine} {precision} is not close: {known}; each vector needs {MIN_CLOSE}.")
        return self._opened(pair, sample)

    def _opened(self, pair: EngineVariant, sample: Sample) -> Engine:
        if pair[0] == "torch" and pair not in self._open:
            torch = TorchEngine(sample.model, "bf16" if pair[1] == "bf16" else "fp32")
            if torch.model is sample.model:  # not kept: it holds the model
                return torch
            self._open[pair] = torch
        if pair not in self._open:
            check_exportable(sample.model)
            at_least = least_tokens(sample.model)
            self._open[pair] = MAKERS[pair[0]].ENGINE(self._make(pair, sample), pair[1], at_least)
            if pair[1] == "fp32":
                self.store.put_tokenizer(sample.tokens, at_least)
        return self._open[pair]

    def _make(self, pair: EngineVariant, sample: Sample, again: bool = False) -> Path:
        """Return the folder of an export, which is made if there is none, or `again`."""
        maker = MAKERS[pair[0]]
        if pair[1] != "int8":
            return self.store.put(pair, lambda folder: maker.export(sample.model, folder))
        if not again and (known := self.store.folder(pair)):
            return known
        whole, batches = self._make((pair[0], "fp32"), sample), sample.batches(least_tokens(sample.model))
        return self.store.put(pair, lambda folder: maker.quantise(whole, folder, batches), again=again)


exports_of = PerModel(Exports, mark)
"""The exports of a model, looked up again if its weights have changed."""


@dataclass(frozen=True)
class Chosen:
    """The chosen engine, the fidelity of its vectors (None for torch), and notes for the user."""

    engine: Engine
    fidelity: Fidelity | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lower = self.fidelity is not None and self.engine.precision != "fp32"
        return f"{self.engine}, {self.fidelity}" if lower else str(self.engine)


def choose(model: SentenceTransformer, choice: EngineChoice, texts: Sequence[str], total: int) -> Chosen:
    """Choose an engine.

    Args:
        model: one that the fast path takes (see `fits`).
        texts: what is to be encoded, or the first of it, 1 or more: checks and int8's ranges are made on a sample.
        total: how many there are in all, about.
    """
    auto = choice.engine == "auto"
    on_cpu = model.device.type == "cpu"
    few = auto and (total < FEW or not on_cpu)
    close = choice.precision == "close"
    if (choice.precision == "fp32" and choice.engine == "torch") or (few and (close or choice.precision == "fp32")):
        return Chosen(TorchEngine(model))  # the way of a single sentence: nothing is looked at
    exports, sample = exports_of(model), Sample(model, sample_of(texts, ENOUGH) if close else texts)
    named = choice.precision in ("bf16", "int8")
    pairs: list[EngineVariant] = [(choice.engine, one) for one in _precisions(choice)]
    if auto:
        pairs = [pair for pair in fast_pairs(choice.precision) if pair[0] == "torch" or release(pair[0])]
        if not named and (few or sample.operations(total) < (LONG_IN_BF16 if close and processor.has_bf16() else LONG)):
            there = exports.checked.__contains__ if few else exports.has
            pairs = [pair for pair in pairs if pair[0] == "torch" or (on_cpu and there(pair))]
    notes: list[str] = []
    for pair in pairs:
        if pair == ("torch", "fp32"):
            break
        try:
            engine = exports.ready(pair, sample, close=close)
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
    if precision == "close" and processor.has_bf16():
        found += [("openvino", "bf16"), ("torch", "bf16")]
    if precision in ("auto", "close", "fp32"):
        found += [("onnx", "fp32"), ("openvino", "fp32")] if avx2 else []
        found.append(("torch", "fp32"))
    return found


def next_export(exports: Exports | None = None, than: EngineVariant | None = None) -> EngineVariant | None:
    """Return the export to make for default calls: the fastest that is missing; None if none would be faster.

    Args:
        exports: of the model; None for a model that has none.
        than: what runs now; None for what torch runs by itself.
    """
    for pair in fast_pairs("close"):
        if pair in (than, ("torch", "fp32")) or (than is None and pair[0] == "torch"):
            return None
        failed = exports is not None and "failed" in (exports.store.judged(pair) or {})
        there = exports is not None and exports.is_there(pair)
        if pair[0] != "torch" and release(pair[0]) and not failed and not there:
            return pair
    return None


def _precisions(choice: EngineChoice) -> list[EnginePrecision]:
    """Return the precisions to try on the requested engine, the fastest first."""
    if choice.precision not in ("auto", "close"):
        return [choice.precision]
    found: list[EnginePrecision] = []
    if choice.precision == "close":
        return ["bf16", "fp32"] if choice.engine != "onnx" and processor.has_bf16() else ["fp32"]
    if choice.engine == "onnx" or (choice.engine == "openvino" and processor.has_int8()):
        found.append("int8")
    if choice.engine != "onnx" and processor.has_bf16():
        found.append("bf16")
    return [*found, "fp32"]
