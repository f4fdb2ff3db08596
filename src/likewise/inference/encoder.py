"""The encoder that `likewise.load` returns: a SentenceTransformer whose `encode` is fast."""

import logging
from typing import Any

import torch
from torch import Tensor

from likewise.corpus.lines_and_rows import without_surrogates
from likewise.encoder.modules import parts_of
from likewise.encoder.saved_models import OwnInference
from likewise.inference.engines.engine import DEFAULT_BATCH, EngineChoice, OwnEncode, is_static
from likewise.inference.model_tokens import UnfitModel, fits
from likewise.inference.policy import DEFAULT, policy_of
from likewise.inference.text_encoder import finished
from likewise.runs.progress import Progress

logger = logging.getLogger(__name__)


class Encoder(OwnInference):
    """A SentenceTransformer with a faster implementation of `encode`.

    The vectors of texts come from batches by a budget of tokens, repeats are encoded once, and `choice` says which
    engine runs. Whatever else `encode` is asked for (token embeddings, images, several processes) is left to
    SentenceTransformer.
    """

    choice: EngineChoice = EngineChoice()
    """Which engine runs, and in which precision, as `load` was asked."""

    loaded_from: str | None = None
    """The folder, as an absolute path, or the name of the hub."""

    last_engine: str | None = None
    """The engine of the last `encode`; None if that was SentenceTransformer's own way."""

    @property
    def engine(self) -> str:
        """The engine that `encode` runs on, and why if that was left open: 'openvino bf16: ...'."""
        if self.choice == DEFAULT and not is_static(self):
            return policy_of(self).default
        return self.last_engine or f"{self.choice.engine} {self.choice.precision}"

    def infer(self, inputs: list[Any], **settings: Any) -> Any:
        """Return the vectors of texts, which `encode` then converts to the requested type."""
        self.last_engine = None
        try:
            return self._fast(inputs, **settings)
        except UnfitModel as reason:
            if self.choice.engine not in ("auto", "torch"):
                logger.warning("The engine %s is not used: %s.", self.choice.engine, reason)
        # In sentence-transformers' own way, whose tokenizers refuse lone surrogates.
        texts = [without_surrogates(text) if isinstance(text, str) else text for text in inputs]
        if is_static(self) and settings.get("batch_size") == DEFAULT_BATCH:
            settings["batch_size"] = OwnEncode(self).batch_size
        return super().infer(texts, **settings)

    @torch.inference_mode()
    def _fast(
        self,
        inputs: list[Any],
        *,
        prompt: str | None = None,
        batch_size: int = DEFAULT_BATCH,
        show_progress_bar: bool = False,
        output_value: str | None = "sentence_embedding",
        save_to_cpu: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        device: str | torch.device | None = None,
        **others: Any,
    ) -> Tensor:
        if output_value != "sentence_embedding" or not inputs:
            raise UnfitModel("it is asked for something else than the vectors of texts")
        limits = ("query_length", "document_length", "query_expansion")
        if others.pop("task", None) and any(getattr(self[0], name, None) for name in limits):
            raise UnfitModel("it reads queries and documents differently")
        if passed := [name for name, value in others.items() if value is not None]:
            raise UnfitModel(f"encode was given {', '.join(sorted(passed))}")
        if device is not None and torch.device(device) != self.device:
            raise UnfitModel("its texts go to another device")
        fits(self, inputs, prompt)
        if any(part.training for part in parts_of(self)):  # eval() itself takes ten times as long
            self.eval()
        texts = [prompt + text for text in inputs] if prompt else list(inputs)
        with Progress(quiet=not show_progress_bar).bar("encoding", len(texts)) as bar:
            # The default batch size is not a limit: batches are limited by tokens.
            at_most = batch_size if batch_size != DEFAULT_BATCH else None
            rows, chosen = policy_of(self).rows(
                self, self.choice, texts, batch_size=batch_size, at_most=at_most, step=bar.advance
            )
        self.last_engine = str(chosen.engine) if self.choice == DEFAULT else str(chosen)
        vectors = torch.as_tensor(finished(rows, truncate_dim, normalize_embeddings))
        return vectors.cpu() if save_to_cpu else vectors.to(self.device)
