"""ArcCSE: dropout twins under an angular margin, and entailment triplets of masked spans.

Zhang et al. 2022, "A Contrastive Framework for Learning Sentence Representations from Pairwise and Triple-wise
Perspective in Angular Space".
"""

from __future__ import annotations

import dataclasses
import math
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Literal

from likewise.recipes import (
    TEMPLATE,
    HeadOptions,
    OptionError,
    Reading,
    Recipe,
    Run,
    Template,
    TextCollator,
    check_templates,
    option,
)
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

    from likewise.encoder.modules import Features
    from likewise.losses import EncoderLoss

_AS_SIMCSE: Record = {"contrastive": "nt-xent", "margin": 0.0, "triplet_weight": 0.0, "sam_rho": 0.0}
_ANY_SHARE = 1000  # words, of which any share of a thousandth is a word


class ArcCSEOptions(HeadOptions):
    """The options of ArcCSE; the defaults are the paper's for a base model (section 4.1)."""

    contrastive: Literal["arccon", "nt-xent", "none"] = option("arccon", "Name of the contrastive part of the loss.")
    pooling: Literal["own", "cls", "mean", "max", "prompt"] = option(  # type: ignore[assignment]  # has one more
        "cls",
        "Pooling of token vectors into the sentence vector. own: the base's own pooling; for a pretrained language "
        "model, cls, or prompt if it is causal. prompt: the mask of the template, or its last token.",
    )
    template: Template = TEMPLATE
    sam_rho: float = option(
        0.05, "Radius rho of sharpness-aware minimization (SAM), as a norm of weights; 0 uses plain AdamW."
    )
    margin: float = option(10.0, "Angular margin m of ArcCon, in degrees.", ge=0, le=90)
    positive_dropout: bool = option(
        True, "Whether to use dropout in the second view of ArcCon as well; the first view always uses it."
    )
    triplet_weight: float = option(0.1, "Weight lambda of the entailment triplet loss; 0 disables triplets.", ge=0)
    triplet_margin: float = option(0.0, "Margin of the triplet loss, as a difference of cosines.")
    triplet_dropout: bool = option(False, "Whether to use dropout in the triplets.")
    triplet_min_words: int = option(25, "Minimum number of words of a sentence from which triplets are made.", gt=0)
    triplet_max_length: int = option(
        0,
        "Maximum number of tokens of a triplet's sentences, which are truncated to it; 0 uses the base's limit.",
        ge=0,
    )
    triplet_limit: int = option(
        0,
        "Maximum number of triplets per batch and process; 0 builds a triplet from every sentence that is long enough.",
        ge=0,
    )
    triplet_every: int = option(
        1,
        "Interval, in updates, of the search for triplets in the wrong order, which alone have a gradient. At the "
        "beginning, and for a while after such a triplet, every update searches; 1 searches in every update.",
        ge=1,
    )
    masks: Literal["nested", "independent"] = option(
        "nested",
        "Relation of the two masks. nested: the farther version contains the closer one, as in the paper. "
        "independent: each mask is drawn separately.",
    )
    mask_closer: float = option(0.2, "Fraction of the words that are masked in the closer version.", ge=0, le=1)
    mask_farther: float = option(0.4, "Fraction of the words that are masked in the farther version.", ge=0, le=1)

    def _check(self) -> None:
        super()._check()
        check_templates(self.template)
        if self.mask_closer > self.mask_farther:
            raise OptionError(f"mask_closer {self.mask_closer} must be at most mask_farther {self.mask_farther}")
        if self.contrastive == "none" and self.triplet_weight == 0:
            raise OptionError("contrastive=none and triplet_weight=0 leave no loss: omit one of them")
        if self.contrastive != "none" and self.dropout == 0:
            raise OptionError("the two views of a sentence differ only by dropout: set dropout above 0")


def triplet_views(rows: list[Record], options: ArcCSEOptions, mask_token: str, seed: int) -> dict[str, list[str]]:
    """Return the columns 'sentence' and 'triplet' of a batch.

    The triplets are K sentences, then K closer, then K farther versions; none if no sentence is long enough.
    """
    from likewise.augment.spans import nested_spans, sentence_rng
    from likewise.corpus.words import DividedText

    at_least = shortest_of_triplets(options) if options.triplet_weight else math.inf
    long = [row["sentence"] for row in rows if row["words"] >= at_least][: options.triplet_limit or None]
    texts = [DividedText.of(sentence) for sentence in long]
    ratios = (options.mask_closer, options.mask_farther)
    independent = options.masks == "independent"
    spans = [
        nested_spans(len(words), ratios, sentence_rng(sentence, seed), independent)
        for sentence, words in zip(long, texts, strict=True)
    ]
    masked = [words.replaced(both[i], mask_token) for i in range(2) for words, both in zip(texts, spans, strict=True)]
    return {"sentence": [row["sentence"] for row in rows], "triplet": long + masked}


def shortest_of_triplets(options: ArcCSEOptions) -> int:
    """Return the fewest words of a sentence of which the three versions of a triplet differ."""
    from likewise.augment.spans import words_to_mask

    ratios = sorted({0.0, options.mask_closer, options.mask_farther})
    words = options.triplet_min_words
    while len({words_to_mask(words, ratio) for ratio in ratios}) < len(ratios) and words < _ANY_SHARE:
        words += 1
    return words


def with_triplets_counted(run: Run) -> Run:
    """Return the unchanged run, after a report of the number of its sentences with a triplet."""
    if run.options.triplet_weight:
        words = run.rows.with_format("numpy")["words"][:]
        enough = int((words >= (least := shortest_of_triplets(run.options))).sum())
        run.progress.tell(f"{enough:,} of {len(words):,} sentences have the {least} words that a triplet needs")
    return run


def arccse_loss(
    loss: EncoderLoss[ArcCSEOptions], sentences: Features, triplets: Features | None = None
) -> dict[str, Tensor]:
    """Return L_arccon and lambda L_triplet (ArcCSE, equation 5); either part is optional.

    ArcCon (equation 3) compares each sentence with itself; with a margin of 0 it is NT-Xent, the loss of SimCSE. The
    triplets (equation 4) keep a sentence closer to its less masked version than to its more masked version. Use it to
    train a pretrained language model; on a fine-tuned encoder, its gain equals SimCSE's.

    Args:
        loss: The encoder and the options.
        sentences: B sentences, as tokens (B, T).
        triplets: The column 'triplet' of `triplet_views`, as tokens (3K, T); None if no sentence is long enough.

    Returns:
        The weighted parts of the loss by name, scalars: 'contrastive' and 'triplet'.

    See also:
        `likewise.recipes.sncse.sncse_loss`: a sentence's negation is a soft negative; for text in which 'not' matters.
        `likewise.recipes.gclsr.GroupedCosine`: two views without negatives; for encoders without a transformer.
        `likewise.losses.functional.arccon`, `entailment_triplet`: the two equations.

    >>> import torch
    >>> from likewise.losses import EncoderLoss
    >>> class Given(torch.nn.Module):
    ...     def forward(self, tokens):
    ...         return {"sentence_embedding": tokens["vectors"]}
    >>> options = ArcCSEOptions(margin=90, temperature=1.0, triplet_weight=0)
    >>> parts = arccse_loss(EncoderLoss(Given(), options), {"vectors": torch.eye(2)})
    >>> {name: round(float(part), 2) for name, part in parts.items()}  # log 2: a margin of 90 degrees leaves nothing
    {'contrastive': 0.69}
    """
    from likewise.losses import functional

    options, parts = loss.options, Record()
    if options.contrastive != "none":
        anchors, positives = two_views(loss, sentences).chunk(2)  # (B, D) each
        everywhere, offset = loss.gathered(positives)
        margin = options.margin if options.contrastive == "arccon" else 0.0
        parts["contrastive"] = functional.arccon(anchors, everywhere, margin, options.temperature, offset)
    if options.triplet_weight:
        hinge = triplet_hinge(loss, triplets)
        if hinge is None:  # zero, with a graph
            hinge = 0.0 * (parts["contrastive"] if parts else loss.vectors(sentences).sum())
        # Other processes may have more triplets, or none.
        parts["triplet"] = options.triplet_weight * hinge * loss.share(_count(triplets))
    return parts


def triplet_hinge(loss: EncoderLoss[ArcCSEOptions], triplets: Features | None) -> Tensor | None:
    """Return L_triplet (ArcCSE, equation 4), the mean over K triplets; None if it is flat, or not computed.

    The hinge is flat for a triplet in the right order, for which a backward pass, two thirds of the cost, would add
    zeros. The encoder therefore first encodes all triplets without gradients, in the updates that `TripletWatch`
    selects, and then the triplets in the wrong order with gradients.
    """
    from likewise.encoder import TripletWatch, find_part
    from likewise.losses import functional
    from likewise.runs import processes

    options, chosen = loss.options, triplets
    watch = find_part(loss.encoder, TripletWatch)
    if watch and not watch.is_due(loss.step):
        return None
    if triplets and _can_skip(options):
        chosen = _out_of_order(loss, triplets)
    if watch and processes.any_of(_count(chosen) > 0):
        watch.restart(loss.step)
    if not chosen or not _count(chosen):
        return None
    with nullcontext() if options.triplet_dropout else _no_dropout(loss):
        anchors, closer, farther = loss.vectors(chosen).chunk(3)  # (K, D) each, or fewer
    hinge = functional.entailment_triplet(anchors, closer, farther, options.triplet_margin)
    return hinge * (_count(chosen) / _count(triplets))


def two_views(loss: EncoderLoss[ArcCSEOptions], sentences: Features) -> Tensor:
    """Return the vectors (2B, D) of both views of B sentences.

    The views are two rows of one forward pass, so that each has its own dropout mask and the batch is padded and sent
    through the encoder once.
    """
    import torch

    if loss.options.positive_dropout:
        return loss.vectors({k: torch.cat([v, v]) if isinstance(v, torch.Tensor) else v for k, v in sentences.items()})
    first = loss.vectors(sentences)
    with _no_dropout(loss):
        return torch.cat([first, loss.vectors(sentences)])


def _can_skip(options: ArcCSEOptions) -> bool:
    """Return whether triplets in the right order can be skipped: not if dropout, or nothing else, makes the loss."""
    return options.contrastive != "none" and not options.triplet_dropout


def _count(triplets: Features | None) -> int:
    return len(triplets["input_ids"]) // 3 if triplets else 0


def _out_of_order(loss: EncoderLoss[ArcCSEOptions], triplets: Features) -> Features:
    """Return the triplets of K, tokens (3K, T), that are not in the right order by the margin."""
    import torch
    from torch.nn import functional as F

    with torch.no_grad(), _no_dropout(loss):
        anchors, closer, farther = (version.float() for version in loss.vectors(triplets).chunk(3))  # (K, D) each
    wrong = F.cosine_similarity(anchors, farther) - F.cosine_similarity(anchors, closer) + loss.options.triplet_margin
    if len(wrong):
        loss.note(triplets_out_of_order=float((wrong > 0).float().mean()))
    chosen = (wrong >= 0).repeat(3)
    return {k: v[chosen] if isinstance(v, torch.Tensor) else v for k, v in triplets.items()}


def _no_dropout(loss: EncoderLoss[ArcCSEOptions]) -> AbstractContextManager[None]:
    """Switch dropout off in a `with` block: its noise would hide the small difference between two versions."""
    from likewise.encoder.modules import dropout_off

    return dropout_off(loss.model)


def _encoder(base: str, options: ArcCSEOptions) -> SentenceTransformer:
    from likewise.encoder import TripletWatch, build_encoder, build_prompt_encoder

    if options.pooling == "prompt":
        encoder = build_prompt_encoder(base, options.template, options.head, options.dropout)
    else:
        encoder = build_encoder(base, options.pooling, options.head, options.dropout)
    if options.triplet_weight and options.triplet_every > 1 and _can_skip(options):
        encoder.append(TripletWatch(options.triplet_every))
    return encoder


def _collator(encoder: SentenceTransformer, options: ArcCSEOptions, seed: int) -> TextCollator:
    from sentence_transformers.sentence_transformer.modules import WordWeights

    from likewise.encoder import find_part

    mask = encoder.tokenizer.mask_token
    if options.triplet_weight:
        if mask is None:
            raise OptionError(
                "the base's tokenizer has no mask token, which triplets need: set triplet_weight to 0, or use the "
                "preset language-model"
            )
        if find_part(encoder, WordWeights):
            raise OptionError(
                "the base reads the mask of a prompt, so that a masked word cannot be distinguished from it: set "
                "triplet_weight to 0"
            )
    views = partial(triplet_views, options=options, mask_token=mask, seed=seed)
    long = Reading.of(encoder, options.triplet_max_length)
    length = options.max_length
    own = Reading.prompted(encoder, length) if options.pooling == "prompt" else Reading.of(encoder, length)
    return TextCollator(views, own, {"triplet": long})


PAPER_BASE = ArcCSEOptions(batch_size=16, accumulation=4, learning_rate=3e-5)
PAPER_LARGE = PAPER_BASE.updated(learning_rate=1e-5, max_length=32)
CPU = ArcCSEOptions(
    pooling="own",
    batch_size=64,
    learning_rate=3e-5,
    max_steps=120,
    max_length=32,
    eval_steps=60,
    sam_rho=0.0,
    triplet_max_length=64,
    triplet_limit=16,
    triplet_every=8,
)
# At the prompt's last token, a causal language model scores above the mean of its tokens before any training, and
# InfoNCE is nearly 0 after 20 updates.
LANGUAGE_MODEL = ArcCSEOptions(
    pooling="prompt",
    batch_size=64,
    chunk=64,
    learning_rate=1e-4,
    max_steps=20,
    max_length=48,
    eval_steps=20,
    sam_rho=0.0,
    triplet_weight=0.0,
)
ARCCSE: Recipe = Recipe(
    name="arccse",
    summary="Angular margin contrastive learning on dropout twins, with entailment triplets of masked spans.",
    source="Zhang et al. 2022, ArcCSE",
    presets={"cpu": CPU, "language-model": LANGUAGE_MODEL, "paper-base": PAPER_BASE, "paper-large": PAPER_LARGE},
    preset_notes={
        "cpu": "Preset for two cores and a fine-tuned encoder: its own pooling, 120 updates of 64 sentences, no SAM; "
        "about two minutes with bf16.",
        "language-model": "This library's preset for a causal language model: the last token of a prompt, without "
        "triplets, which need a mask token; 20 updates of 64 sentences at rate 1e-4.",
        "paper-base": "Section 4.1, BERT-base: 16 x 4 sentences an update, rate 3e-5, [CLS], SAM, the whole corpus.",
        "paper-large": "Section 4.1, BERT-large: the same at rate 1e-5, and at most 32 tokens.",
    },
    loss=arccse_loss,
    build_encoder=_encoder,
    build_collator=_collator,
    stages=(with_triplets_counted,),
)
SIMCSE: Recipe = dataclasses.replace(
    ARCCSE,
    name="simcse",
    summary="Contrastive learning on dropout twins (NT-Xent): ArcCSE without margin, triplets and SAM.",
    source="Gao et al. 2021, SimCSE, unsupervised",
    presets={
        "cpu": CPU.updated(**_AS_SIMCSE),
        "language-model": LANGUAGE_MODEL.updated(**_AS_SIMCSE),
        # Batch size, rate and length of SimCSE's own table for BERT-base, unsupervised.
        "paper-base": PAPER_BASE.updated(**_AS_SIMCSE, batch_size=64, accumulation=1, max_length=32),
        "paper-large": PAPER_LARGE.updated(**_AS_SIMCSE, batch_size=64, accumulation=1),
    },
    preset_notes={
        "cpu": "The preset of arccse, without margin, triplets and SAM.",
        "language-model": "The preset of arccse, without the margin.",
        "paper-base": "SimCSE's table for BERT-base, unsupervised: 64 sentences, rate 3e-5, at most 32 tokens.",
        "paper-large": "SimCSE's table for BERT-large, unsupervised: the same at rate 1e-5.",
    },
)
