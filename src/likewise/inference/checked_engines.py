"""The engines of one model: opened, exported, and checked against torch in float32, each once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from sentence_transformers import SentenceTransformer

from likewise.encoder.attention import is_hooked
from likewise.inference.engines.engine import CannotExport, Engine, EngineVariant, QuantisationRefused, TorchEngine
from likewise.inference.engines.graph import check_exportable, fingerprint, least_tokens
from likewise.inference.engines.store import (
    MAKERS,
    MAX_DIFFERENCE,
    MIN_CLOSE,
    MIN_COSINE,
    MIN_RANK,
    Fidelity,
    Store,
    release,
)
from likewise.inference.sample import Sample


class CheckedEngines:
    """The engines of a model with its current weights.

    The object holds no reference to the model, which is passed with the sample of each call.

    Attributes:
        store: Exports of the model in the cache, with the results of their checks.
        opened: Open engines of this process.
        checked: Fidelity of the engines that passed the check in this process.
        failed: Reasons of failures.
        hooked: Whether the model has hooks.
    """

    def __init__(self, model: SentenceTransformer) -> None:
        self.store = Store(fingerprint(model))
        self.hooked = is_hooked(model)
        self.opened: dict[EngineVariant, Engine] = {}
        self.checked: dict[EngineVariant, Fidelity] = {}
        self.failed: dict[EngineVariant, str] = {}

    def is_there(self, pair: EngineVariant, judged: bool = False) -> bool:
        """Return whether an engine can run without an export being made first.

        Args:
            judged: Whether texts exist by which float32 is judged now.
        """
        if pair[0] == "torch":
            return True
        if not release(pair[0]) or self.store.folder(pair) is None:
            return False
        return pair[1] != "fp32" or judged or self.store.is_same(pair[0])

    def make(self, pair: EngineVariant, sample: Sample) -> Fidelity:
        """Make an export for later, and judge its vectors by a sample of 1 or more texts.

        Raises:
            CannotExport: If it does not take the model, or its vectors are not near enough.
        """
        try:
            return self.check(pair, sample, close=True)
        except CannotExport as reason:
            self.failed[pair] = str(reason)
            self.store.keep(pair, str(reason))
            raise

    def check(self, pair: EngineVariant, sample: Sample, close: bool = False) -> Fidelity:
        """Return how near an engine's vectors are to float32's.

        Args:
            close: Whether a lower precision must satisfy 'close'.

        Raises:
            CannotExport: If it does not take the model, or its float32 differs from torch's.
            QuantisationRefused: If its lower precision differs too much.
        """
        engine, precision = pair
        lower = precision != "fp32"
        if close or engine != "torch":
            check_exportable(sample.model)
        known = self.known(pair) if close or not lower else self.checked.get(pair)
        if isinstance(known, str):
            raise CannotExport(known)
        if known is None:
            known = self._judged(pair, sample)
            if close or not lower:
                self.store.keep(pair, known)
        if not lower and not known.same:
            limit = f"not {MAX_DIFFERENCE:.0e} at most"
            raise CannotExport(f"its vectors differ from torch's by {known.difference:.1e} and {limit}")
        if lower and close and not known.close:
            nearness = f"{known.lowest:.5f} on {known.sentences} texts"
            raise QuantisationRefused(
                f"{engine} {precision}: minimum cosine with float32 {nearness}, below {MIN_CLOSE}"
            )
        if lower and not close and not known.near:
            raise QuantisationRefused(
                f"{engine} {precision} does not preserve the vectors: {known}; {MIN_COSINE} and {MIN_RANK} are "
                f"required. Use --precision fp32."
            )
        self.checked[pair] = known
        return known

    def known(self, pair: EngineVariant) -> Fidelity | str | None:
        """Return how near an engine's vectors are, or why it has none; None if it was not checked."""
        return self.checked.get(pair) or self.store.verdict(pair)

    def open(self, pair: EngineVariant, sample: Sample) -> Engine:
        """Return an engine, which stays open; its export is made if there is none.

        Raises:
            CannotExport: It does not take the model.
            MissingExtraError: Its package is not installed.
        """
        if pair[0] == "torch" and pair not in self.opened:
            engine = TorchEngine(sample.model, "bf16" if pair[1] == "bf16" else "fp32", traced=not self.hooked)
            if engine.model is sample.model:  # not kept: it holds the model
                return engine
            self.opened[pair] = engine
        if pair not in self.opened:
            at_least = least_tokens(sample.model)
            self.opened[pair] = MAKERS[pair[0]].ENGINE(self._made(pair, sample), pair[1], at_least)
            if pair[1] == "fp32":
                self.store.put_tokenizer(sample.tokens, at_least)
        return self.opened[pair]

    def _judged(self, pair: EngineVariant, sample: Sample) -> Fidelity:
        """Return how near an engine's vectors are to float32's, by a sample of which nothing is known yet.

        A graph that runs in bfloat16 is judged in float32 as well, in which it encodes a query of a new process
        without torch (see `export_encoder`).
        """
        fidelity = sample.fidelity(self.open(pair, sample))
        if pair[0] in MAKERS and pair[1] == "bf16":
            with suppress(CannotExport):
                self.check((pair[0], "fp32"), sample)
        return fidelity

    def _made(self, pair: EngineVariant, sample: Sample) -> Path:
        if known := self.store.folder(pair):
            return known
        maker = MAKERS[pair[0]]
        if pair[1] != "int8":
            sample.tell(f"exporting the model for {pair[0]} once (15 to 40 seconds)")
            return self.store.put(pair, lambda folder: maker.export(sample.model, folder))
        whole = self._made((pair[0], "fp32"), sample)
        batches = sample.batches(least_tokens(sample.model))
        return self.store.put(pair, lambda folder: maker.quantise(whole, folder, batches))
