"""The exports of a model: made if needed, kept, opened, and checked against torch's vectors."""

import weakref
from dataclasses import asdict
from typing import Any

from sentence_transformers import SentenceTransformer

from likewise.inference.engines import onnx_engine, openvino_engine
from likewise.inference.engines.engine import CannotExport, Engine, QuantisationRefused, TorchEngine
from likewise.inference.engines.fidelity import ENOUGH, MAX_DIFFERENCE, MIN_COSINE, MIN_RANK, Fidelity, Sample
from likewise.inference.engines.graph import check_exportable, fingerprint, least_tokens, mark
from likewise.inference.engines.names import EngineName, EngineVariant
from likewise.inference.engines.store import Store, release

MAKERS: dict[EngineName, Any] = {"openvino": openvino_engine, "onnx": onnx_engine}


class Exports:
    """The engines of a model with its present weights; holds only a weak reference to the model."""

    def __init__(self, model: SentenceTransformer) -> None:
        self._model = weakref.ref(model)
        self.mark = mark(model)
        self.store = Store(fingerprint(model))
        self._open: dict[EngineVariant, Engine] = {}
        self.checked: dict[EngineVariant, Fidelity] = {}
        self._same = False

    def has(self, pair: EngineVariant) -> bool:
        """Return whether an engine can run without making an export first."""
        return pair[0] == "torch" or self.store.about(_file_of(pair)) is not None

    def known_same(self, engine: EngineName) -> Fidelity | None:
        """Return the fidelity of a float32 export that was checked before and has torch's vectors; otherwise None."""
        about = self.store.about((engine, "fp32")) or {}
        if "fidelity" not in about or about.get("release") != release(engine):
            return None
        found = Fidelity(**about["fidelity"])
        return found if found.same else None

    def any_same(self) -> bool:
        """Return whether there is a float32 export with torch's vectors already."""
        self._same = self._same or any((name, "fp32") in self._open or self.known_same(name) for name in MAKERS)
        return self._same

    def ready(self, pair: EngineVariant, sample: Sample) -> Engine:
        """Return an engine that preserves the vectors."""
        engine, precision = pair
        known = self.checked.get(pair)
        if known is None and precision == "fp32":  # a lower precision depends on the texts too
            known = self.known_same(engine)
        if known is None or known.sentences < ENOUGH <= len(sample.texts):
            older = self.has(pair)
            known = sample.fidelity(self._opened(pair, sample))
            if older and precision == "int8" and not known.near:
                # Its ranges were taken from another corpus: take them from this one.
                self._open.pop(pair)
                self._make(pair, sample)
                known = sample.fidelity(self._opened(pair, sample))
            if engine != "torch":
                self.store.note(pair, fidelity=asdict(known), release=release(engine))
            _approve(pair, known)
        self.checked[pair] = known
        return self._opened(pair, sample)

    def _opened(self, pair: EngineVariant, sample: Sample) -> Engine:
        if pair[0] == "torch":  # not kept: it holds the model
            return TorchEngine(self._encoder, "bf16" if pair[1] == "bf16" else "fp32")
        if pair not in self._open:
            check_exportable(self._encoder)
            if not self.has(pair):
                self._make(pair, sample)
            kind = MAKERS[pair[0]].ENGINE
            self._open[pair] = kind(self.store.folder(_file_of(pair)), pair[1], least_tokens(self._encoder))
            if pair[1] == "fp32":
                self.store.put_tokens(pair, sample.runner.tokens, least_tokens(self._encoder))
        return self._open[pair]

    def _make(self, pair: EngineVariant, sample: Sample) -> None:
        model, maker, whole = self._encoder, MAKERS[pair[0]], _file_of((pair[0], "bf16"))
        if self.store.about(whole) is None:
            self.store.put(whole, lambda folder: maker.export(model, folder))
        if pair[1] == "int8":
            source, batches = self.store.folder(whole), sample.batches(least_tokens(model))
            self.store.put(pair, lambda folder: maker.quantise(source, folder, batches))

    @property
    def _encoder(self) -> SentenceTransformer:
        model = self._model()
        assert model is not None, "the model of these exports is gone"
        return model


def _file_of(pair: EngineVariant) -> EngineVariant:
    """Return the export for an engine and precision: bf16 runs the float32 export."""
    return (pair[0], "fp32") if pair[1] == "bf16" else pair


def _approve(pair: EngineVariant, fidelity: Fidelity) -> None:
    engine, precision = pair
    if precision == "fp32" and not fidelity.same:
        raise CannotExport(
            f"its vectors differ from torch's by {fidelity.difference:.1e} and not {MAX_DIFFERENCE:.0e} at most"
        )
    if precision != "fp32" and not fidelity.near:
        raise QuantisationRefused(
            f"{engine} {precision} does not keep the vectors: {fidelity}; {MIN_COSINE} and {MIN_RANK} are needed. "
            "Take --precision fp32."
        )


_EXPORTS: weakref.WeakKeyDictionary[SentenceTransformer, Exports] = weakref.WeakKeyDictionary()


def exports_of(model: SentenceTransformer) -> Exports:
    """Return the exports of a model, looked up again if its weights have changed."""
    known = _EXPORTS.get(model)
    if known is None or known.mark != mark(model):
        known = _EXPORTS[model] = Exports(model)
    return known
