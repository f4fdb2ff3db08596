"""The exports of a model: made if needed, kept, opened, and checked against torch's vectors."""

import weakref
from dataclasses import asdict
from typing import Any

from sentence_transformers import SentenceTransformer

from likewise.inference.engines import onnx_engine, openvino_engine
from likewise.inference.engines.engine import (
    CannotExport,
    Engine,
    EngineVariant,
    QuantisationRefused,
    TorchEngine,
)
from likewise.inference.engines.fidelity import ENOUGH, MAX_DIFFERENCE, MIN_COSINE, MIN_RANK, Fidelity, Sample
from likewise.inference.engines.graph import check_exportable, fingerprint, least_tokens, mark
from likewise.inference.engines.store import Store, release

MAKERS: dict[str, Any] = {"openvino": openvino_engine, "onnx": onnx_engine}


class Exports:
    """The engines of a model with its present weights; the model itself is not held, but comes with each sample."""

    def __init__(self, model: SentenceTransformer) -> None:
        self.mark = mark(model)
        self.store = Store(fingerprint(model))
        self._open: dict[EngineVariant, Engine] = {}
        self.checked: dict[EngineVariant, Fidelity] = {}
        self._same = False

    def has(self, pair: EngineVariant) -> bool:
        """Return whether an engine can run without making an export first."""
        return pair[0] == "torch" or self.store.about(pair) is not None

    def any_same(self) -> bool:
        """Return whether there is a float32 export with torch's vectors already."""
        self._same = self._same or any((name, "fp32") in self._open or self.store.same(name) for name in MAKERS)
        return self._same

    def ready(self, pair: EngineVariant, sample: Sample) -> Engine:
        """Return an engine that preserves the vectors.

        Raises:
            CannotExport: it does not take the model, or its float32 differs from torch's.
            QuantisationRefused: its lower precision differs too much.
        """
        engine, precision = pair
        known = self.checked.get(pair)
        if known is None and precision == "fp32" and (about := self.store.same(engine)):
            known = Fidelity(**about["fidelity"])  # of a lower precision it depends on the texts too
        if known is None or known.sentences < ENOUGH <= len(sample.texts):
            older = self.has(pair)
            known = sample.fidelity(self._opened(pair, sample))
            if older and precision == "int8" and not known.near:
                # Its ranges were taken from another corpus: take them from this one.
                self._open.pop(pair)
                self._make(pair, sample)
                known = sample.fidelity(self._opened(pair, sample))
            if precision == "fp32":
                self.store.note(pair, fidelity=asdict(known), release=release(engine))
            if precision == "fp32" and not known.same:
                limit = f"not {MAX_DIFFERENCE:.0e} at most"
                raise CannotExport(f"its vectors differ from torch's by {known.difference:.1e} and {limit}")
            if precision != "fp32" and not known.near:
                raise QuantisationRefused(
                    f"{engine} {precision} does not keep the vectors: {known}; {MIN_COSINE} and {MIN_RANK} are needed. "
                    "Take --precision fp32."
                )
        self.checked[pair] = known
        return self._opened(pair, sample)

    def _opened(self, pair: EngineVariant, sample: Sample) -> Engine:
        if pair[0] == "torch":  # not kept: it holds the model
            return TorchEngine(sample.model, "bf16" if pair[1] == "bf16" else "fp32")
        if pair not in self._open:
            check_exportable(sample.model)
            if not self.has(pair):
                self._make(pair, sample)
            at_least = least_tokens(sample.model)
            self._open[pair] = MAKERS[pair[0]].ENGINE(self.store.folder(pair), pair[1], at_least)
            if pair[1] == "fp32":
                self.store.put_tokens(pair, sample.runner.tokens, at_least)
        return self._open[pair]

    def _make(self, pair: EngineVariant, sample: Sample) -> None:
        maker, whole = MAKERS[pair[0]], (pair[0], "fp32")
        if self.store.about(whole) is None:
            self.store.put(whole, lambda folder: maker.export(sample.model, folder))
        if pair[1] == "int8":
            batches = sample.batches(least_tokens(sample.model))
            self.store.put(pair, lambda folder: maker.quantise(self.store.folder(whole), folder, batches))


_EXPORTS: weakref.WeakKeyDictionary[SentenceTransformer, Exports] = weakref.WeakKeyDictionary()


def exports_of(model: SentenceTransformer) -> Exports:
    """Return the exports of a model, looked up again if its weights have changed."""
    known = _EXPORTS.get(model)
    if known is None or known.mark != mark(model):
        known = _EXPORTS[model] = Exports(model)
    return known
