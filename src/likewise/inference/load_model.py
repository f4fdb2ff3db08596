"""A sentence encoder with a fast `encode`, its loading, and the result of a job that saves a model."""

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

_FACTS_OF_REPR = ("recipe", "base", "chosen", "reason", "steps", "best")
"""Facts of a record that `repr` says."""
_SIDES = ("truncation_side", "padding_side")

logger = logging.getLogger(__name__)


class Encoder(OwnInference):
    """A SentenceTransformer with a faster implementation of `encode`, as `likewise.load` returns it.

    Batches are limited by their number of tokens, repeated texts are encoded once, and `choice` selects the engine.
    Other outputs of `encode` (token embeddings, images, several processes) are left to SentenceTransformer.

    >>> import likewise
    >>> model = likewise.load("bundled:minilm", engine="torch")
    >>> model.encode(["It rains.", "Rain falls.", "It rains."]).shape
    (3, 384)
    >>> model.choice.engine, model.last_engine
    ('torch', 'torch fp32')
    """

    choice: EngineChoice = EngineChoice()
    """Engine and precision, as passed to `load`."""

    loaded_from: str | None = None
    """The folder, as an absolute path, or the name of the hub."""

    last_engine: str | None = None
    """Engine of the last `encode`; None if SentenceTransformer's own method ran."""

    @property
    def engine(self) -> str:
        """The engine of `encode`, with the reason if it was chosen automatically: 'openvino bf16: ...'."""
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
        name: Path or name of the model: a folder (a SentenceTransformer or a transformers checkpoint), a name of the
            model hub, or `bundled:NAME` for a model from the package registry (`bundled:minilm`, `bundled:mpnet`).
        device: Device of the model ("cpu", "cuda:0"); by default the best available device.
        engine: Engine of `encode`: "torch", "openvino", "onnx", or "auto" for the fastest engine on this processor.
        precision: Precision of `encode`. "close" is the default of the engine "auto": bfloat16 if the processor
            supports it and the cosine of each vector with its float32 version is 0.999 or more on a sample of your
            texts, otherwise float32. An existing export is used; create one with `likewise export`. "fp32" is the
            default of the other engines and gives the vectors of sentence-transformers up to rounding (exactly with
            "torch" and at most 32 texts per call). "bf16" and "int8" are refused if they change the vectors too much
            (see `likewise.inference.policy`), and "auto" is the fastest precision that does not. With every precision
            except "close", the model is exported once the number of texts justifies it.

    The attribute `engine` of the encoder states which engine runs and why. The logger 'likewise' reports the same at
    level INFO.

    Modules of likewise load without `trust_remote_code`, because their code is installed and not read from the folder.
    A model with its own code is refused.

    Returns:
        The encoder, a SentenceTransformer with a faster `encode`.

    Raises:
        LoadError: If there is no such folder or name, or the folder contains no valid sentence encoder.
        EngineError: If the engine, the precision or their combination does not exist.

    Example:
        >>> import likewise
        >>> model = likewise.load("bundled:minilm", engine="torch")
        >>> model.encode(["A cat sleeps.", "A cat is asleep."]).shape
        (2, 384)
        >>> model.engine
        'torch fp32'
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
    """Return the name of a base: the given name, or the folder of a loaded encoder.

    An encoder that has changed since it was loaded, or that has no folder, is saved in the cache, in a folder named by
    its content, so that the same encoder resumes the same job.

    Raises:
        LoadError: If it is neither a name nor a sentence encoder, or has settings that a saved copy does not preserve.
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
    saved = str(cached("bases", content, lambda folder: _save(base, folder)))
    if ModelSettings.of(load(saved, precision="fp32")).key != ModelSettings.of(base).key:
        # Some tokenizers of transformers are rebuilt from their vocabulary, without what was set on them.
        raise LoadError(
            "the base was changed after loading in a way that a saved copy does not preserve (such as a tokenizer's "
            "normalizer, pre-tokenizer or special tokens): change the texts instead, or give a folder with this change"
        )
    return saved


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
        facts = "".join(f", {name}={self.record[name]!r}" for name in _FACTS_OF_REPR if self.record.get(name))
        return f"{type(self).__name__}({str(self.path)!r}{facts})"

    @property
    def is_partial(self) -> bool:
        """True if files, rows or lines of its text that should have been read could not be."""
        report = (self.record.get("corpus") or {}).get("report") or {}
        known = {"dropped": report.get("dropped", {}), "failed": report.get("failed", 0)}
        return CorpusReport(**known).is_partial

    @cached_property
    def model(self) -> Any:
        """The saved model, loaded on first access."""
        return CrossEncoder(str(self.path)) if self.record.get("kind") == "cross-encoder" else load(self.path)
