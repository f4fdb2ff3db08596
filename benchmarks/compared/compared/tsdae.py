"""TSDAE: a decoder reconstructs a sentence from the vector of its noisy version.

Wang, Reimers, Gurevych 2021, "TSDAE: Using Transformer-based Sequential Denoising Auto-Encoder for Unsupervised
Sentence Embedding Learning"; the loss is sentence-transformers' own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from likewise.encoder.poolings import PoolingMode
from likewise.errors import LikewiseError
from likewise.recipes import Reading, Recipe, SharpOptions, TextCollator, check_encoder, option

if TYPE_CHECKING:
    import numpy as np
    from torch import nn


class TSDAEOptions(SharpOptions):
    """The options of TSDAE."""

    pooling: PoolingMode = option("cls", "Pooling of token vectors into the sentence vector.")
    deletion: float = option(0.6, "Probability that an input word is deleted.", ge=0, le=1)


def delete_words(sentence: str, share: float, rng: np.random.Generator) -> str:
    """Delete words at random; at least one is left (TSDAE, section 3).

    Args:
        share: probability that a word goes, from 0 to 1.

    >>> delete_words("the small cat sees a dog", 0.6, np.random.default_rng(2))
    'cat a dog'
    """
    from likewise.corpus.words import DividedText

    if not 0 <= share <= 1:
        raise LikewiseError(f"the share of deleted words must be between 0 and 1, not {share}")
    words = DividedText.of(sentence)
    if not len(words):
        return sentence
    kept = rng.random(len(words)) >= share
    if not kept.any():
        kept[rng.integers(len(words))] = True
    return words.without({place for place, stays in enumerate(kept) if not stays})


def noisy_views(rows: list[dict[str, Any]], deletion: float, seed: int) -> dict[str, list[str]]:
    """Return {'noisy': the sentences with words deleted, 'sentence'}; a deletion is fixed by sentence and seed."""
    from likewise.augment.spans import sentence_rng

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
    check_base=lambda base, options: check_encoder(base, "train tsdae", truncate_dim="its decoder reads whole vectors"),
    modules=("compared.tsdae_loss.TrainingDecoder",),
)
