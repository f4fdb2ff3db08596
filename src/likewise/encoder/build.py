"""An encoder from a base: any Hugging Face name or folder, a sentence-transformers folder, or `bundled:minilm`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from likewise.corpus.bundled import resolve_model
from likewise.encoder.head import TrainingHead
from likewise.errors import first_line
from likewise.transformers_output import no_bar

PoolingMode = Literal["cls", "mean", "max"]


class BaseModelError(ValueError):
    """The base cannot be loaded or has no parts that the recipe needs; the message names the cure."""


@no_bar()
def load_transformer(base: str) -> Transformer:
    """The Transformer module of a base.

    Args:
        base: a Hugging Face name, a folder, or `bundled:minilm`.

    Raises:
        BaseModelError: there is no such model here, or it holds no transformer.
    """
    path = resolve_model(base)
    if Path(path).is_dir() and not (Path(path) / "config.json").exists():
        # A sentence-transformers folder may keep its transformer in a folder of its own (0_Transformer).
        first = SentenceTransformer(path)[0]
        if not isinstance(first, Transformer):
            raise BaseModelError(f"--base {base}: its first module is {type(first).__name__}, not a Transformer")
        return first
    try:
        return Transformer.load(path)  # and not Transformer(path): it reads the maximal length too
    except (OSError, ValueError) as error:
        raise BaseModelError(
            f"--base {base}: cannot be loaded ({first_line(error)}). Give a folder that holds config.json and weights, "
            "a Hugging Face name that this machine can reach, or bundled:minilm."
        ) from error


def build_encoder(
    base: str, pooling: PoolingMode = "cls", head: bool = True, dropout: float | None = None
) -> SentenceTransformer:
    """A trainable encoder: the base's transformer, a fresh pooling, and the training head if asked for.

    Args:
        base: see `load_transformer`. Pooling and normalisation that a base brings along are left behind.
        pooling: how token vectors (B, T, D) become a sentence vector (B, D).
        head: add the MLP head of contrastive training (see `TrainingHead`).
        dropout: probability for hidden states and attention; None keeps the base's own.

    Raises:
        BaseModelError: the base cannot be loaded.
        ValueError: a dropout outside [0, 1).
    """
    if dropout is not None and not 0 <= dropout < 1:
        raise ValueError(f"dropout is a probability in [0, 1), not {dropout}")
    transformer = load_transformer(base)
    if dropout is not None:
        set_dropout(transformer, dropout)
    width = transformer.get_embedding_dimension()
    if width is None:
        raise BaseModelError(f"--base {base}: it does not tell the size of its token vectors")
    modules: list[torch.nn.Module] = [transformer, Pooling(width, pooling_mode=pooling)]
    if head:
        modules.append(TrainingHead(width))
    return SentenceTransformer(modules=modules)


def set_dropout(transformer: Transformer, probability: float) -> None:
    """Set the probability of every dropout of a transformer, those of attention included."""
    for module in transformer.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = probability
    config = transformer.auto_model.config
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"):
        if hasattr(config, name):
            setattr(config, name, probability)
