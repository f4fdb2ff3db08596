"""ArcCSE: dropout twins under an angular margin, and entailment triplets of masked spans.

Zhang et al. 2022, "A Contrastive Framework for Learning Sentence Representations from Pairwise and Triple-wise
Perspective in Angular Space".
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from likewise.recipes import HeadOptions, OptionError, Reading, Recipe, SharpOptions, TextCollator, option

if TYPE_CHECKING:
    from torch import nn


class ArcCSEOptions(HeadOptions, SharpOptions):
    """The options of ArcCSE; the defaults are the paper's for a base model (section 4.1)."""

    contrastive: Literal["arccon", "nt-xent", "none"] = option("arccon", "The contrastive part of the loss.")
    margin: float = option(10.0, "Angular margin m of ArcCon, in degrees.", ge=0, le=90)
    positive_dropout: bool = option(
        True, "Use dropout in the second view of ArcCon as well; the first view always has it."
    )
    positive_deletion: float = option(
        0.0, "Fraction of words deleted from the second view; with 0 the views differ by dropout alone.", ge=0, lt=1
    )
    triplet_weight: float = option(0.1, "Weight lambda of the entailment triplet loss; 0 makes no triplets.", ge=0)
    triplet_margin: float = option(0.0, "Margin of the triplet loss, as a difference of cosines.")
    triplet_temperature: float = option(
        0.0,
        "Temperature of the softplus that takes the place of the hinge in the triplet loss; 0 uses the hinge.",
        ge=0,
    )
    triplet_by: Literal["mask", "delete"] = option("mask", "Mask the chosen words, or delete them.")
    triplet_dropout: bool = option(False, "Use dropout in the triplets.")
    triplet_min_words: int = option(25, "Make triplets only from sentences with at least this many words.", gt=0)
    triplet_max_length: int = option(
        0, "Truncate the sentences of triplets to this many tokens; 0 uses the base's limit.", ge=0
    )
    triplet_limit: int = option(
        0,
        "Maximum number of triplets in the batch of a process; 0 makes one from every sentence that is long enough.",
        ge=0,
    )
    triplet_wrong_only: bool = option(
        False, "Train only on the triplets that the base, before training, orders wrongly; a frozen copy finds them."
    )
    mask_closer: float = option(0.2, "Fraction of words masked (or deleted) in the closer version.", ge=0, le=1)
    mask_farther: float = option(0.4, "Fraction of words masked (or deleted) in the farther version.", ge=0, le=1)
    keep_weight: float = option(
        0.0,
        "Weight of the KL divergence from the similarities that the base, a sentence encoder, gives in the batch.",
        ge=0,
    )

    def _check(self) -> None:
        super()._check()
        if self.mask_closer > self.mask_farther:
            raise OptionError(f"mask_closer {self.mask_closer} must be at most mask_farther {self.mask_farther}")
        if self.contrastive == "none" and self.triplet_weight == 0:
            raise OptionError("contrastive=none and triplet_weight=0 leave nothing to learn from: drop one of them")
        if self.contrastive == "none" and self.positive_deletion:
            raise OptionError("positive_deletion is for the views of ArcCon: set contrastive to arccon or nt-xent")
        if self.contrastive != "none" and self.dropout == 0 and not self.positive_deletion:
            raise OptionError("the two views of a sentence differ by dropout alone: set dropout above 0")


def triplet_views(
    rows: list[dict[str, Any]], options: ArcCSEOptions, mask_token: str, seed: int
) -> dict[str, list[str]]:
    """Return 'sentence', 'shortened' (the same without some words, where asked for) and 'triplet'.

    The triplets are K sentences, then K closer, then K farther versions; none if no sentence is long enough.
    """
    from likewise.augment.spans import mask_words, nested_spans, sentence_rng
    from likewise.augment.word_edits import delete_words
    from likewise.corpus.sentences import without_words

    at_least = options.triplet_min_words if options.triplet_weight else math.inf
    long = [row["sentence"] for row in rows if row["words"] >= at_least][: options.triplet_limit or None]
    columns = {"sentence": [row["sentence"] for row in rows]}
    if share := options.positive_deletion:
        columns["shortened"] = [delete_words(s, share, sentence_rng(s, seed)) for s in columns["sentence"]]
    texts = [sentence.split() for sentence in long]
    ratios = (options.mask_closer, options.mask_farther)
    spans = [nested_spans(len(words), ratios, sentence_rng(s, seed)) for s, words in zip(long, texts, strict=True)]
    version = partial(mask_words, mask_token=mask_token) if options.triplet_by == "mask" else without_words
    versions = [version(words, both[i]) for i in range(2) for words, both in zip(texts, spans, strict=True)]
    return columns | {"triplet": long + versions}


def _collator(encoder: Any, options: ArcCSEOptions, seed: int) -> TextCollator:
    from sentence_transformers.sentence_transformer.modules import WordWeights

    from likewise.encoder import find_part

    mask = encoder.tokenizer.mask_token
    if options.triplet_weight and options.triplet_by == "mask":
        if mask is None:
            raise OptionError("the base's tokenizer has no mask token, which triplets need: set triplet_by to delete")
        if find_part(encoder, WordWeights):
            raise OptionError(
                "the base reads the mask of a prompt, so that a masked word cannot be told from it: set triplet_by to "
                "delete, or triplet_weight to 0"
            )
    views = partial(triplet_views, options=options, mask_token=mask, seed=seed)
    long = Reading.of(encoder, options.triplet_max_length)
    return TextCollator(views, Reading.of(encoder, options.max_length), {"triplet": long})


def _loss(encoder: Any, options: ArcCSEOptions) -> nn.Module:
    from likewise.recipes.arccse_loss import ArcCSELoss

    return ArcCSELoss(encoder, options)


def _encoder(base: str, options: ArcCSEOptions) -> Any:
    from likewise.encoder import FrozenCopy, build_encoder, is_sentence_encoder

    encoder = build_encoder(base, pooling=options.pooling, head=options.head, dropout=options.dropout)
    mined = options.triplet_weight and options.triplet_wrong_only
    if mined or (options.keep_weight and is_sentence_encoder(base)):
        encoder.append(FrozenCopy.of(encoder))
    return encoder


PAPER_BASE = ArcCSEOptions(batch_size=16, accumulation=4, learning_rate=3e-5)
PAPER_LARGE = PAPER_BASE.updated(learning_rate=1e-5, max_length=32)
CPU = ArcCSEOptions(
    pooling="own",
    batch_size=64,
    learning_rate=1e-4,
    max_steps=40,
    max_length=32,
    eval_steps=20,
    sam_rho=0.0,
    triplet_max_length=64,
    triplet_limit=16,
)

ARCCSE: Recipe = Recipe(
    name="arccse",
    summary="Angular margin contrastive learning on dropout twins, with entailment triplets of masked spans.",
    source="Zhang et al. 2022, ArcCSE",
    presets={"cpu": CPU, "paper-base": PAPER_BASE, "paper-large": PAPER_LARGE},
    build_encoder=_encoder,
    build_collator=_collator,
    build_loss=_loss,
)

_AS_SIMCSE: dict[str, Any] = {"contrastive": "nt-xent", "margin": 0.0, "triplet_weight": 0.0, "sam_rho": 0.0}

SIMCSE: Recipe = dataclasses.replace(
    ARCCSE,
    name="simcse",
    summary="Contrastive learning on dropout twins (NT-Xent): ArcCSE without margin, triplets and SAM.",
    source="Gao et al. 2021, SimCSE, unsupervised",
    presets={
        "cpu": CPU.updated(**_AS_SIMCSE),
        # Batch size, rate and length of SimCSE's own table for BERT-base, unsupervised.
        "paper-base": PAPER_BASE.updated(**_AS_SIMCSE, batch_size=64, accumulation=1, max_length=32),
        "paper-large": PAPER_LARGE.updated(**_AS_SIMCSE, batch_size=64, accumulation=1),
    },
)
