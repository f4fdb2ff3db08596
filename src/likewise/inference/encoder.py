"""The encoder that `likewise.load` returns: a SentenceTransformer whose `encode` is fast."""

import logging
from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import truncate_embeddings
from torch import Tensor
from torch.nn.functional import normalize

from likewise.corpus.lines_and_rows import without_surrogates
from likewise.encoder.modules import parts_of
from likewise.encoder.saved_models import OwnInference
from likewise.inference.chooser import Chosen, choose, exports_of
from likewise.inference.engines.engine import Engine, EngineChoice, TorchEngine
from likewise.inference.model_tokens import UnfitModel, fits, is_static, static_vectors
from likewise.inference.road import equal_vectors, road_of
from likewise.inference.text_encoder import TextEncoder
from likewise.inference.tokens import FEW
from likewise.runs.progress import Progress

DEFAULT_BATCH = 32
"""The batch size of SentenceTransformer.encode where none is given."""

DEFAULT = EngineChoice("auto", "close")
"""What `load` takes if it is not told."""

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

    short: int = 0
    """Texts of calls with one batch or less."""

    last_engine: str | None = None
    """What the last `encode` ran on; None where SentenceTransformer's own way was taken."""

    @property
    def engine(self) -> str:
        """The engine that `encode` runs on, and why if that was left open: 'openvino bf16: ...'."""
        if self.choice == DEFAULT and not is_static(self):
            return str(road_of(self))
        return self.last_engine or f"{self.choice.engine} {self.choice.precision}"

    def infer(self, inputs: list[Any], **settings: Any) -> Any:
        """Return the vectors of texts, which `encode` then converts to the requested type."""
        self.last_engine, choice = None, self.choice
        if len(inputs) <= DEFAULT_BATCH and choice != DEFAULT:
            self.short += len(inputs)
            # A batch is too small to check an export on: only one that was checked is used, once opening it pays.
            if choice == EngineChoice() and (self.short < FEW or not exports_of(self).any_same()):
                choice = EngineChoice("torch")
        try:
            return self._fast(inputs, choice, **settings)
        except UnfitModel as reason:
            if self.choice.engine not in ("auto", "torch"):
                logger.warning("The engine %s is not used: %s.", self.choice.engine, reason)
            return self._plain(inputs, **settings)

    def _plain(self, inputs: list[Any], **settings: Any) -> Any:
        """Return the vectors in sentence-transformers' own way, whose tokenizers refuse lone surrogates."""
        texts = [without_surrogates(text) if isinstance(text, str) else text for text in inputs]
        return super().infer(texts, **settings)

    @torch.inference_mode()
    def _fast(
        self,
        inputs: list[Any],
        choice: EngineChoice,
        *,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool = False,
        output_value: str | None = "sentence_embedding",
        save_to_cpu: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        device: Any = None,
        **others: Any,
    ) -> Tensor:
        if output_value != "sentence_embedding" or not inputs:
            raise UnfitModel("it is asked for something else than the vectors of texts")
        limits = ("query_length", "document_length", "query_expansion")
        if others.pop("task", None) and any(getattr(self[0], name, None) for name in limits):
            raise UnfitModel("it reads queries and documents differently")
        if given := [name for name, value in others.items() if value is not None]:
            raise UnfitModel(f"encode was given {', '.join(sorted(given))}")
        if device is not None and torch.device(device) != self.device:
            raise UnfitModel("its texts go to another device")
        if any(part.training for part in parts_of(self)):  # eval() itself takes ten times as long
            self.eval()
        shown = Progress(quiet=not show_progress_bar)
        # The default batch size is not a limit: batches are limited by tokens.
        at_most = batch_size if batch_size != DEFAULT_BATCH else None
        if choice == DEFAULT and not is_static(self):
            fits(self, inputs, prompt)
            texts = [prompt + text for text in inputs] if prompt else list(inputs)
            with shown.bar("encoding", len(texts)) as bar:
                found, self.last_engine = road_of(self).vectors(
                    self, texts, batch_size=batch_size, at_most=at_most, step=bar.advance
                )
        elif self.choice == EngineChoice("torch") and len(inputs) <= DEFAULT_BATCH:
            fits(self, inputs, prompt)
            found = equal_vectors(self, [(prompt or "") + text for text in inputs], batch_size)
            self.last_engine = "torch fp32"
        else:
            total = max(len(inputs), self.short)
            found, chosen = fast_vectors(
                self, inputs, choice, prompt=prompt, at_most=at_most, total=total, progress=shown
            )
            self.last_engine = str(chosen)
        found = finished(found, truncate_dim, normalize_embeddings)
        return found.cpu() if save_to_cpu else found.to(self.device)


def fast_vectors(
    model: SentenceTransformer,
    inputs: Sequence[Any],
    choice: EngineChoice | Engine,
    *,
    prompt: str | None = None,
    at_most: int | None = None,
    total: int = 0,
    progress: Progress,
) -> tuple[Tensor, Chosen]:
    """Return the vectors of texts by the fast path, and the engine used.

    Args:
        total: how many texts there are in several calls, if that is more than S; what pays depends on it.

    Returns:
        (S, D), not truncated and not normalised.
    """
    if is_static(model) and all(isinstance(text, str) for text in inputs):
        texts = [(prompt or "") + text for text in inputs]
        with progress.bar("encoding", len(texts)) as bar:
            return static_vectors(model, texts, at_most=at_most, step=bar.advance), Chosen(TorchEngine(model))
    tokens = fits(model, inputs, prompt)
    texts = [prompt + text for text in inputs] if prompt else list(inputs)
    total = max(total, len(texts))
    chosen = choose(model, choice, texts, total) if isinstance(choice, EngineChoice) else Chosen(choice)
    for note in chosen.notes:
        logger.warning(note)
    with progress.bar("encoding", len(texts)) as bar:
        encoder = TextEncoder(tokens, chosen.engine, batch_size=at_most)
        return torch.as_tensor(encoder.rows(texts, bar.advance)), chosen


def settled(model: SentenceTransformer) -> EngineChoice:
    """Return a model's engine for what is compared, chosen or kept: float32 if the model's own is left open."""
    own: EngineChoice = getattr(model, "choice", EngineChoice("torch"))
    return EngineChoice(own.engine, "fp32") if own.precision == "close" else own


def default_prompt(model: SentenceTransformer) -> str | None:
    """Return the default prompt that `encode` puts before each text."""
    return model.prompts.get(model.default_prompt_name) if model.default_prompt_name is not None else None


def finished(found: Tensor, truncate_dim: int | None, normalized: bool) -> Tensor:
    """Return vectors (S, D) cut to a dimension and scaled to length 1, if asked for."""
    if truncate_dim is not None:
        found = truncate_embeddings(found, truncate_dim)
    return normalize(found, p=2, dim=1) if normalized else found
