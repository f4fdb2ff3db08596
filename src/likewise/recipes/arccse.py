"""ArcCSE: dropout twins under an angular margin, and entailment triplets of masked spans.

Zhang et al. 2022, "A Contrastive Framework for Learning Sentence Representations from Pairwise and Triple-wise
Perspective in Angular Space". Where a value comes from, and what differs from the paper: docs/papers.md.
"""

import dataclasses
import math
from typing import Any, Literal

from likewise.augment.spans import mask_words, nested_spans, sentence_rng, without_words
from likewise.augment.word_edits import delete_words
from likewise.encoder.build import build_encoder
from likewise.encoder.encoder_copy import FrozenCopy
from likewise.encoder.modules import find_part
from likewise.encoder.opening import is_sentence_encoder
from likewise.losses.arccse import ArcCSELoss
from likewise.recipes.collate import Reading, TextCollator
from likewise.recipes.options import HeadOptions
from likewise.recipes.recipe import Recipe
from likewise.runs.options import OptionError, option


class ArcCSEOptions(HeadOptions):
    """The options of ArcCSE; the defaults are the paper's for a base model (section 4.1)."""

    contrastive: Literal["arccon", "nt-xent", "none"] = option("arccon", "The contrastive part of the loss.")
    margin: float = option(10.0, "Angular margin m of ArcCon, in degrees.", ge=0, le=90)
    positive_dropout: bool = option(True, "Dropout on in the second view of ArcCon too (the first always has it).")
    positive_deletion: float = option(
        0.0,
        "Share of the words deleted from the second view of a sentence; 0: the views differ by dropout alone.",
        ge=0,
        lt=1,
    )
    triplet_weight: float = option(0.1, "Weight lambda of the entailment triplets; 0: none.", ge=0)
    triplet_margin: float = option(0.0, "Margin of the triplets, in units of cosine.")
    triplet_temperature: float = option(0.0, "Temperature of a softplus as the triplets' loss; 0: the hinge.", ge=0)
    triplet_by: Literal["mask", "delete"] = option("mask", "Whether the chosen words are masked or deleted.")
    triplet_dropout: bool = option(False, "Dropout on in the triplets.")
    triplet_min_words: int = option(25, "Fewest words of a sentence that triplets are made from.", gt=0)
    triplet_max_length: int = option(0, "Tokens kept of a triplet's sentences; 0: as many as the base reads.", ge=0)
    triplet_limit: int = option(0, "Most triplets in a batch of one process; 0: one for every long sentence.", ge=0)
    mask_closer: float = option(0.2, "Share of words masked (or deleted) in the closer version.", ge=0, le=1)
    mask_farther: float = option(0.4, "Share of words masked (or deleted) in the farther version.", ge=0, le=1)

    keep_weight: float = option(
        0.0,
        "Weight of the divergence (KL) of a batch's similarities from the base's, if it is a sentence encoder.",
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


class TripletViews:
    """The views of rows: 'sentence', 'shortened' (the same without some words, where asked for) and 'triplet'.

    The triplets are K sentences, then K closer, then K farther versions.
    """

    def __init__(self, options: ArcCSEOptions, mask_token: str | None, seed: int) -> None:
        if options.triplet_weight and options.triplet_by == "mask" and mask_token is None:
            raise OptionError("the base's tokenizer has no mask token, which triplets need: set triplet_by to delete")
        self.options, self.mask_token, self.seed = options, mask_token or "", seed

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, list[str]]:
        """Return texts by column; without triplets if no sentence is long enough."""
        at_least = self.options.triplet_min_words if self.options.triplet_weight else math.inf
        long = [row["sentence"] for row in rows if row["words"] >= at_least][: self.options.triplet_limit or None]
        versions = [self._versions(sentence) for sentence in long]
        triplets = [*long, *(closer for closer, _ in versions), *(farther for _, farther in versions)]
        columns = {"sentence": [row["sentence"] for row in rows]}
        if share := self.options.positive_deletion:
            columns["shortened"] = [delete_words(s, share, sentence_rng(s, self.seed)) for s in columns["sentence"]]
        return columns | {"triplet": triplets}

    def _versions(self, sentence: str) -> tuple[str, str]:
        words = sentence.split()
        ratios = (self.options.mask_closer, self.options.mask_farther)
        closer, farther = nested_spans(len(words), ratios, sentence_rng(sentence, self.seed))
        if self.options.triplet_by == "delete":
            return without_words(words, closer), without_words(words, farther)
        return mask_words(words, closer, self.mask_token), mask_words(words, farther, self.mask_token)


def _collator(encoder: Any, options: ArcCSEOptions, seed: int) -> TextCollator:
    wanted = {"sentence": options.max_length, "shortened": options.max_length, "triplet": options.triplet_max_length}
    return TextCollator(
        {column: Reading.of(encoder, length) for column, length in wanted.items()},
        TripletViews(options, encoder.tokenizer.mask_token, seed),
    )


def _loss(encoder: Any, options: ArcCSEOptions) -> ArcCSELoss:
    margin = {"arccon": options.margin, "nt-xent": 0.0}.get(options.contrastive)
    return ArcCSELoss(
        encoder,
        margin,
        options.temperature,
        positive_dropout=options.positive_dropout,
        triplet_weight=options.triplet_weight,
        triplet_margin=options.triplet_margin,
        triplet_dropout=options.triplet_dropout,
        triplet_temperature=options.triplet_temperature,
        keep_weight=options.keep_weight if margin is not None and find_part(encoder, FrozenCopy) else 0.0,
        shortened=options.positive_deletion > 0,
    )


def _encoder(base: str, options: ArcCSEOptions) -> Any:
    encoder = build_encoder(base, pooling=options.pooling, head=options.head, dropout=options.dropout)
    if options.keep_weight and is_sentence_encoder(base):
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

ARCCSE = Recipe(
    name="arccse",
    summary="Angular margin contrastive learning on dropout twins, with entailment triplets of masked spans.",
    source="Zhang et al. 2022, ArcCSE",
    presets={"cpu": CPU, "paper-base": PAPER_BASE, "paper-large": PAPER_LARGE},
    build_encoder=_encoder,
    build_collator=_collator,
    build_loss=_loss,
)

_AS_SIMCSE: dict[str, Any] = {"contrastive": "nt-xent", "margin": 0.0, "triplet_weight": 0.0, "sam_rho": 0.0}

SIMCSE = dataclasses.replace(
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
