"""TSDAE: a decoder reconstructs a sentence from the vector of its noisy version.

Wang, Reimers, Gurevych 2021, "TSDAE: Using Transformer-based Sequential Denoising Auto-Encoder for Unsupervised
Sentence Embedding Learning"; the loss is sentence-transformers' own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from likewise.encoder.poolings import PoolingMode
from likewise.recipes import Reading, Recipe, SharpOptions, TextCollator, option

if TYPE_CHECKING:
    from torch import nn


class TSDAEOptions(SharpOptions):
    """The options of TSDAE."""

    pooling: PoolingMode = option("cls", "Pooling: which token vectors make the sentence vector.")
    deletion: float = option(0.6, "Probability that an input word is deleted.", ge=0, le=1)


def noisy_views(rows: list[dict[str, Any]], deletion: float, seed: int) -> dict[str, list[str]]:
    """Return {'noisy': the sentences with words deleted, 'sentence'}; a deletion is fixed by sentence and seed."""
    from likewise.augment.spans import sentence_rng
    from likewise.augment.word_edits import delete_words

    sentences = [row["sentence"] for row in rows]
    noisy = [delete_words(text, deletion, sentence_rng(text, seed)) for text in sentences]
    return {"noisy": noisy, "sentence": sentences}


def _encoder(base: str, options: TSDAEOptions) -> Any:
    from likewise.encoder import build_encoder

    return build_encoder(base, pooling=options.pooling, head=False)


def _loss(encoder: Any, options: TSDAEOptions) -> nn.Module:
    from compared.tsdae_loss import DenoisingLoss

    return DenoisingLoss(encoder)


PAPER = TSDAEOptions(batch_size=8, schedule="constant", sam_rho=0.0, length_batches=False)

TSDAE = Recipe(
    name="tsdae",
    summary="A denoising auto-encoder: words are deleted, and a decoder restores the sentence from its vector.",
    source="Wang et al. 2021, TSDAE",
    presets={"cpu": PAPER.updated(batch_size=16, max_length=32, eval_steps=50, length_batches=True), "paper": PAPER},
    build_encoder=_encoder,
    build_collator=lambda encoder, options, seed: TextCollator(
        partial(noisy_views, deletion=options.deletion, seed=seed), Reading.of(encoder, options.max_length)
    ),
    build_loss=_loss,
    modules=("compared.tsdae_loss.TrainingDecoder",),
)
