"""A sentence encoder whose `encode` is fast, how it is loaded, and the result of a job that ends with a model."""

import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from torch import Tensor

from likewise.corpus.clean_text import without_surrogates
from likewise.corpus.counts import CorpusReport
from likewise.encoder.location import LoadError, check_loadable
from likewise.encoder.modules import parts_of
from likewise.encoder.saved_models import OwnInference, open_model
from likewise.encoder.settings import ModelSettings, hash_of_model
from likewise.errors import LikewiseError
from likewise.inference.engines.engine import (
    DEFAULT_BATCH,
    EngineChoice,
    EngineName,
    EnginePrecision,
    OwnEncode,
    is_static,
)
from likewise.inference.model_tokens import UnfitModel, fits
from likewise.inference.policy import DEFAULT, policy_of
from likewise.inference.text_encoder import finished
from likewise.runs.cache import cached
from likewise.runs.options import checked
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record

_TOLD = ("recipe", "base", "chosen", "reason", "steps", "best")
"""Facts of a record that `repr` says."""
_SIDES = ("truncation_side", "padding_side")

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
            raise UnfitModel("something other than the vectors of texts is requested")
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


@checked
def load(
    name: str | os.PathLike[str],
    *,
    device: str | torch.device | None = None,
    engine: EngineName = "auto",
    precision: EnginePrecision | None = None,
) -> Encoder:
    """Load a sentence encoder: a SentenceTransformer whose `encode` is faster.

    Args:
        name: a folder (a SentenceTransformer or a transformers checkpoint), a name of the model hub, or
            `bundled:NAME` for a model that comes with a package (`bundled:minilm`, `bundled:mpnet`).
        device: where to put it ("cpu", "cuda:0"); by default the best device there is.
        engine: what `encode` runs on: "torch", "openvino", "onnx", or "auto", which takes what is fast on this
            processor.
        precision: "close", the default of the engine "auto": bfloat16 where the processor has it, if each vector has a
            cosine of 0.999 or more with the one in float32 on a sample of your texts, otherwise float32. It takes an
            export that is there, and makes none: `likewise export` does. "fp32", the vectors of
            sentence-transformers, up to rounding; with the engine "torch" and up to 32 texts in a call, to the last
            bit; the default of an engine that is named. "bf16" or "int8", if those are near enough (see
            `likewise.inference.policy`); "auto", the fastest that is. With any but "close", an export is made when
            there is so much to encode that it pays.

    What runs, and why, is the encoder's `engine`, and one line of the logger 'likewise' at INFO.

    Modules that likewise itself defines load without `trust_remote_code`: they are code that is installed, not code
    from the folder. A model that brings its own code is refused.

    Raises:
        LoadError: there is no such folder or name, the folder holds no sentence encoder, or its files are broken.
        EngineError: an unknown engine or precision, or a pair that does not exist.
    """
    choice = EngineChoice(engine, precision or (DEFAULT.precision if engine == "auto" else "fp32"))
    location = check_loadable(os.fspath(name))
    with torch.random.fork_rng(devices=[]):
        # Weights that a folder lacks (a pooler that no vector needs) start at random: the same in every process.
        torch.default_generator.manual_seed(0)
        model = open_model(Encoder, location, device)
    model.choice = choice
    model.loaded_from = str(location.folder.resolve()) if location.folder else location.path
    return model


def default_prompt(model: SentenceTransformer) -> str:
    """Return the default prompt that `encode` puts before each text; "" if there is none."""
    return ModelSettings.of(model).prompt()


def base_name(base: SentenceTransformer | str | os.PathLike[str]) -> str:
    """Return the name of a base: as it is given, or of an encoder that is loaded, that of the folder that holds it.

    An encoder that was changed since it was loaded, or never had a folder, is saved in the cache, in a folder called by
    its content, so that the same encoder resumes the same job.

    Raises:
        LoadError: it is neither a name nor a sentence encoder, or has what a saved copy does not keep.
    """
    if isinstance(base, str | os.PathLike):
        return os.fspath(base)
    if not isinstance(base, SentenceTransformer):
        raise LoadError(
            f"a base must be a folder, a name or a loaded sentence encoder, not {type(base).__name__}: give, for "
            f"example, bundled:minilm"
        )
    content = _content(base)
    config = getattr(getattr(base[0], "auto_model", None), "config", None)
    if traced := getattr(base, "loaded_from", None) or getattr(config, "_name_or_path", ""):
        with suppress(LikewiseError):
            if _content(load(traced, precision="fp32")) == content:
                return str(traced)
    kept = str(cached("bases", content, lambda folder: _save(base, folder)))
    if ModelSettings.of(load(kept, precision="fp32")).key != ModelSettings.of(base).key:
        # Some tokenizers of transformers are built anew from their vocabulary, without what was set on them.
        raise LoadError(
            "the base was changed after loading in a way that a saved copy does not preserve (such as a tokenizer's "
            "normalizer, pre-tokenizer or special tokens): change the texts instead, or give a folder with this change"
        )
    return kept


def _save(model: SentenceTransformer, folder: Path) -> None:
    """Save a model with the sides of its tokenizer, which transformers writes only if they were there at first."""
    tokenizer = getattr(model[0], "tokenizer", None)
    if tokenizer is not None and hasattr(tokenizer, "init_kwargs"):
        tokenizer.init_kwargs |= {name: getattr(tokenizer, name) for name in _SIDES}
    model.save_pretrained(str(folder), create_model_card=False)


def _content(model: SentenceTransformer) -> str:
    """Return a fingerprint of all that decides the vectors of an encoder: its class does not."""
    return hash_of_model(model, [*map(repr, model.children())], ModelSettings.of(model).key)


@dataclass(frozen=True, repr=False)
class SavedModel:
    """A model that a job has saved."""

    path: Path
    record: Record

    def __repr__(self) -> str:
        told = "".join(f", {name}={self.record[name]!r}" for name in _TOLD if self.record.get(name))
        return f"{type(self).__name__}({str(self.path)!r}{told})"

    @property
    def is_partial(self) -> bool:
        """True if files, rows or lines of its text that should have been read could not be."""
        report = (self.record.get("corpus") or {}).get("report") or {}
        known = {"dropped": report.get("dropped", {}), "failed": report.get("failed", 0)}
        return CorpusReport(**known).is_partial

    @cached_property
    def model(self) -> Any:
        """The saved model, loaded on first access."""
        if self.record.get("kind") != "cross-encoder":
            return load(self.path)
        return CrossEncoder(str(self.path))
