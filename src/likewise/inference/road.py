"""The engine of the call that people write, `load(name).encode(texts)`: the fastest that keeps the vectors.

It is a kept export, torch in bfloat16, or torch in float32. What is fast follows from the processor; that a lower
precision keeps the vectors is judged once for a model and a machine, on 32 of the user's own texts, and remembered. No
export is made here: where one would be faster and much is encoded, it is made in the background for later processes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.encoder.pooled_token import is_hooked
from likewise.errors import first_line
from likewise.inference import background
from likewise.inference.chooser import LONG, exports_of, fast_pairs, next_export
from likewise.inference.engines.engine import CannotExport, Engine, EngineVariant, TorchEngine
from likewise.inference.engines.graph import check_exportable
from likewise.inference.engines.store import release
from likewise.inference.fidelity import ENOUGH, MIN_CLOSE, compare, sample_of
from likewise.inference.model_tokens import tokens_of
from likewise.inference.per_model import PerModel
from likewise.inference.text_encoder import TextEncoder, float32
from likewise.inference.tokens import Step

_AT_ONCE = 4 * ENOUGH
"""Texts of a call from which its engine is judged before it, on some of them. A shorter call of a model that was never
judged here is encoded in float32, so that no first call takes longer for being judged."""

logger = logging.getLogger(__name__)


class Road:
    """The engine of a model's default calls, chosen once, so that a process gives a text one vector.

    Attributes:
        pair: engine and precision; None before they are chosen.
        why: the reason, in words.
        hooked: whether the model has hooks.
    """

    def __init__(self, model: SentenceTransformer) -> None:
        self.pair: EngineVariant | None = None
        self.why = f"not chosen yet; the first {ENOUGH} texts are encoded in float32"
        self.exports, self.hooked = exports_of(model), is_hooked(model)
        self._engine: Engine | None = None  # None for torch in float32, which holds the model
        self._texts: dict[str, None] = {}  # the first ones, for an export that is made in the background
        self._seen: dict[str, np.ndarray] = {}  # texts and their vectors in float32
        self._weights = sum(part.weight.numel() for part in model.modules() if isinstance(part, nn.Linear))
        self._work = 0.0
        self._lock = threading.Lock()

    def __str__(self) -> str:
        return f"{' '.join(self.pair or ('torch', 'fp32'))}: {self.why}"

    def vectors(
        self, model: SentenceTransformer, texts: Sequence[str], *, batch_size: int, at_most: int | None, step: Step
    ) -> tuple[Tensor, str]:
        """Return the vectors (S, D) of S texts, 1 or more, and what they were made by.

        Args:
            batch_size: sentences of a batch of a short call in float32, as in sentence-transformers.
            at_most: the most sentences in a batch, if they are limited in addition to the tokens.
            step: called with the number of sentences done after each batch.
        """
        tokens = tokens_of(model)
        with self._lock:
            if self.pair is None:
                if len(texts) >= _AT_ONCE and len(some := sample_of(texts, ENOUGH)) == ENOUGH:
                    self._see(some, TextEncoder(tokens, TorchEngine(model)).rows(some))
                self._choose(model)
            self._export_later(model, texts)
        if self._engine is not None:
            try:
                found = TextEncoder(tokens, self._engine, batch_size=at_most).rows(texts, step)
                return torch.as_tensor(found), str(self._engine)
            except Exception as error:
                if self._engine.name == "torch":
                    raise
                # Nobody asked for this engine: what torch can encode must not fail by it.
                logger.warning("%s fails, and torch runs instead: %s", self._engine, first_line(error))
                self._take(("torch", "fp32"), f"{self._engine} fails: {first_line(error)}", model)
        if len(texts) <= batch_size:
            found = equal_vectors(model, texts, batch_size)
        else:
            found = TextEncoder(tokens, TorchEngine(model), batch_size=at_most).rows(texts, step)
        if self.pair is None:
            with self._lock:
                self._see(texts, found)
                if self.pair is None and len(self._seen) == ENOUGH:
                    self._choose(model)
        return found, "torch fp32"

    def _see(self, texts: Sequence[str], vectors: Tensor) -> None:
        for text, row in zip(texts, float32(vectors), strict=True):
            if len(self._seen) < ENOUGH:
                self._seen.setdefault(text, row)

    def _choose(self, model: SentenceTransformer) -> None:
        """Choose the engine, if all that the choice depends on is known."""
        reasons: list[str] = []
        try:
            check_exportable(model)
        except CannotExport as unfit:
            return self._take(("torch", "fp32"), str(unfit), model)
        if self.hooked:
            return self._take(("torch", "fp32"), "the model has hooks, which no other engine would call", model)
        for pair in fast_pairs("close"):
            engine, precision = pair
            if pair == ("torch", "fp32"):
                break
            if engine != "torch" and not self.exports.is_there(pair):
                reasons.append(f"there is no export for {engine}" if release(engine) else f"{engine} is not installed")
                continue
            reason = "its vectors are torch's up to rounding"
            if precision != "fp32":
                known = self.exports.store.judged(pair)
                if known is None and len(self._seen) < ENOUGH:
                    return None
                known = known or self._judged(pair, model)
                close = known.get("lowest", -1.0) >= MIN_CLOSE
                lowest = f"lowest cosine with float32 {known.get('lowest', 0.0):.5f} on {known.get('sentences')} texts"
                reason = known.get("failed") or lowest
                if not close:
                    reasons.append(f"{engine} {precision}: {reason}")
                    continue
            try:
                found = self.exports.open(pair, model)
            except Exception as error:  # of every kind, by an engine that is broken here
                reasons.append(f"{engine} {precision}: {first_line(error)}")
                continue
            if isinstance(found, TorchEngine) and found.model is model:
                reasons.append("torch bf16: its parts have a forward of their own")
                continue
            self._engine = found
            return self._take(pair, "; ".join([reason, *reasons]), model)
        return self._take(("torch", "fp32"), "; ".join(dict.fromkeys(reasons)) or "nothing here is faster", model)

    def _judged(self, pair: EngineVariant, model: SentenceTransformer) -> dict[str, Any]:
        try:
            encoder = TextEncoder(tokens_of(model), self.exports.open(pair, model))
            found = float32(encoder.rows(list(self._seen)))
        except Exception as error:
            return {"failed": first_line(error)}
        return self.exports.keep(pair, compare(found, np.stack(list(self._seen.values()))))

    def _take(self, pair: EngineVariant, why: str, model: SentenceTransformer) -> None:
        if pair == ("torch", "fp32"):
            self._engine = None
        self.pair, self.why = pair, why
        self._seen.clear()
        logger.info("%s runs on %s", getattr(model, "loaded_from", None) or "the model", self)

    def _export_later(self, model: SentenceTransformer, texts: Sequence[str]) -> None:
        """Start an export in the background once so much is encoded that the process is no short one."""
        name = getattr(model, "loaded_from", None)
        if self._work >= LONG or not name:
            return
        for text in texts[: ENOUGH - len(self._texts)]:
            self._texts.setdefault(text)
        self._work += 2.0 * self._weights * sum(map(len, texts)) / 4  # about four characters a token
        if self._work < LONG or model.device.type != "cpu":
            return
        pair = next_export(self.exports, self.pair or ("torch", "fp32"))
        if pair and background.start(name, self.exports.store.fingerprint, pair, list(self._texts)):
            logger.info("an export for %s is made in the background, for later processes", " ".join(pair))


road_of = PerModel(Road, lambda model: (exports_of(model), is_hooked(model)))
"""The road of a model, found anew if the model has changed."""


def equal_vectors(model: SentenceTransformer, texts: Sequence[str], batch_size: int) -> Tensor:
    """Return vectors (S, D) by torch in the batches of sentence-transformers, equal to its own to the last bit."""
    order = np.argsort([-len(text) for text in texts])  # as it sorts
    batches = [order[start : start + batch_size] for start in range(0, len(texts), batch_size)]
    encoder = TextEncoder(tokens_of(model), TorchEngine(model, whole=True))
    found, _ = encoder.in_batches(encoder.items(texts), batches)
    return found
