"""ESimCSE: SimCSE with repeated sub-words in the positive and a momentum encoder's queue among the negatives.

Wu et al. 2022, "ESimCSE: Enhanced Sample Building Method for Contrastive Learning of Unsupervised Sentence Embedding".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from likewise.errors import LikewiseError
from likewise.recipes import HeadOptions, Reading, Recipe, TextCollator, option

if TYPE_CHECKING:
    import numpy as np
    from torch import nn


class ESimCSEOptions(HeadOptions):
    """The options of ESimCSE; the defaults are the paper's for BERT-base.

    None is SAM's: its second pass would fill the queue twice.
    """

    repetition: float = option(
        0.32, "Maximum fraction of sub-words repeated in the positive; 0 repeats at most two.", ge=0, le=1
    )
    momentum: float = option(0.995, "Momentum lambda of the encoder that fills the queue.", ge=0, le=1)
    queue: float = option(2.5, "Size of the queue, as a multiple of the batch size; 0 uses no queue.", ge=0)


def repeat_tokens(tokens: Sequence[int], rate: float, rng: np.random.Generator) -> list[int]:
    """Repeat random tokens, each once and right after itself (ESimCSE, section 3.1).

    How many is drawn evenly from 0 to max(2, floor(rate x N)), both ends included, and which ones evenly from all N
    without replacement; a sentence of N < 2 tokens repeats at most N.

    Args:
        tokens: N token ids, without special tokens.
        rate: dup_rate, the largest share of tokens repeated in a long sentence, from 0 to 1.

    >>> repeat_tokens([7, 8, 9], 0.32, np.random.default_rng(0))
    [7, 8, 8, 9, 9]
    """
    if not 0 <= rate <= 1:
        raise LikewiseError(f"the rate of repetition is a share from 0 to 1, not {rate}")
    n = len(tokens)
    most = min(n, max(2, int(rate * n)))
    repeated = set(rng.choice(n, size=rng.integers(0, most + 1), replace=False).tolist()) if n else set()
    return [token for i, token in enumerate(tokens) for _ in range(2 if i in repeated else 1)]


def repeated_views(
    rows: list[dict[str, Any]], own: Reading, longest: int, rate: float, seed: int
) -> dict[str, list[list[int]]]:
    """Return {'sentence': B lists of tokens, 'repeated': the same ones with repeated sub-words}.

    Args:
        own: how a sentence is cut; repetitions come on top, as in the authors' code.
        longest: tokens that the base reads.
    """
    from likewise.augment.spans import sentence_rng

    sentences = [row["sentence"] for row in rows]
    tokens = own.tokenizer(sentences, truncation=True, max_length=own.length, return_special_tokens_mask=True)
    repeated = []
    for ids, special, sentence in zip(tokens["input_ids"], tokens["special_tokens_mask"], sentences, strict=True):
        # Special tokens stand at the ends; one that a user wrote into a text is text. A sentence may have no token.
        start = special.index(0) if 0 in special else len(ids)
        end = len(special) - special[::-1].index(0) if 0 in special else len(ids)
        inner = repeat_tokens(ids[start:end], rate, sentence_rng(sentence, seed)) if start < end else []
        repeated.append([*ids[:start], *inner[: longest - start - (len(ids) - end)], *ids[end:]])
    return {"sentence": tokens["input_ids"], "repeated": repeated}


def _encoder(base: str, options: ESimCSEOptions) -> Any:
    from compared.esimcse_loss import MomentumQueue
    from likewise.encoder import build_encoder
    from likewise.runs import processes

    encoder = build_encoder(base, pooling=options.pooling, head=options.head, dropout=options.dropout)
    size = int(options.queue * options.batch_size * processes.count())
    if size:
        dimension = encoder.get_embedding_dimension()
        encoder.append(MomentumQueue.of(encoder, size=size, dimension=dimension, momentum=options.momentum))
    return encoder


def _loss(encoder: Any, options: ESimCSEOptions) -> nn.Module:
    from compared.esimcse_loss import ESimCSELoss

    return ESimCSELoss(encoder, options)


def _collator(encoder: Any, options: ESimCSEOptions, seed: int) -> TextCollator:
    own = Reading.of(encoder, options.max_length)
    views = partial(repeated_views, own=own, longest=Reading.of(encoder).length, rate=options.repetition, seed=seed)
    return TextCollator(views, own)


PAPER_BASE = ESimCSEOptions(batch_size=64, learning_rate=3e-5, max_length=32, length_batches=False)
CPU = PAPER_BASE.updated(pooling="own", batch_size=128, learning_rate=1e-4, eval_steps=60, length_batches=True)

ESIMCSE = Recipe(
    name="esimcse",
    summary="SimCSE with repeated sub-words in the positive and a momentum encoder's queue of further negatives.",
    source="Wu et al. 2022, ESimCSE",
    presets={"cpu": CPU, "paper-base": PAPER_BASE, "paper-large": PAPER_BASE.updated(learning_rate=1e-5)},
    build_encoder=_encoder,
    build_collator=_collator,
    build_loss=_loss,
    modules=("compared.esimcse_loss.MomentumQueue",),
)
