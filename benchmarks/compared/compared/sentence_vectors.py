"""Post-processing of sentence vectors: an untrained encoder, and a module fitted to its vectors of a sample of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from likewise.recipes.recipe import sample_rows
from likewise.runs.progress import Progress

if TYPE_CHECKING:
    import numpy as np
    from sentence_transformers import SentenceTransformer
    from torch import nn

Pooled = Literal["first-last", "last-two", "last", "cls", "own"]
"""Which vectors of a base are post-processed; 'own': those that the base gives as a model."""


def pooled_encoder(base: str, pooled: Pooled) -> SentenceTransformer:
    """Return the untrained encoder whose vectors are post-processed.

    Args:
        base: a Hugging Face name, a folder, or `bundled:NAME`; with 'own' also any model that `likewise.load` takes.
    """
    from compared.averages import FIRST_LAST, LAST_TWO, build_layer_average
    from likewise.encoder.build import build_encoder
    from likewise.encoder.modules import without_training_head
    from likewise.inference.load_model import load

    if pooled == "own":
        return load(base, precision="fp32")
    if pooled == "cls":
        return without_training_head(build_encoder(base, pooling="cls", head=False))
    return build_layer_average(base, {"first-last": FIRST_LAST, "last-two": LAST_TWO, "last": (-1,)}[pooled])


def fitted(
    fit: Callable[[np.ndarray, Any, int, Progress], nn.Module],
) -> Callable[[str, Any, Sequence[str], int, Progress], SentenceTransformer]:
    """Return a function that builds an encoder followed by a module fitted to its vectors of sampled sentences.

    It carries what the base carries: prompts, similarity; a truncated dimension is where the fit begins.

    Args:
        fit: from vectors (N, D) float32, options, seed and progress to the module.
    """

    def build(base: str, options: Any, sentences: Sequence[str], seed: int, progress: Progress) -> SentenceTransformer:
        import torch
        from sentence_transformers.sentence_transformer.modules import Dense

        from likewise.encoder.settings import ModelSettings
        from likewise.inference.vectors import encode

        encoder = pooled_encoder(base, options.pooling)
        sample = [sentences[int(row)] for row in sample_rows(len(sentences), options.sentences, seed, 3)]
        vectors = encode(encoder, sample, batch_size=options.batch_size, progress=progress)
        modules, settings = list(encoder.children()), ModelSettings.of(encoder)
        if kept := settings.truncate_dim:  # fitted to the first numbers, which a stock module cuts off
            whole: Any = replace(settings, truncate_dim=None).carried_by(modules).get_embedding_dimension()
            cut = Dense(
                whole, kept, bias=False, activation_function=torch.nn.Identity(), init_weight=torch.eye(kept, whole)
            )
            modules, settings = [*modules, cut], replace(settings, truncate_dim=None)
        return settings.carried_by([*modules, fit(vectors, options, seed, progress)])

    return build
