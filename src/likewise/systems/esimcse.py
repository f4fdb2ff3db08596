"""ESimCSE: SimCSE with repeated sub-words in the positive and a momentum encoder's queue among the negatives.

Wu et al. 2022, "ESimCSE: Enhanced Sample Building Method for Contrastive Learning of Unsupervised Sentence Embedding".
"""

from functools import partial
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.augment.spans import sentence_rng
from likewise.augment.word_edits import repeat_tokens
from likewise.encoder.build import build_encoder
from likewise.encoder.modules import find_part, saved_modules
from likewise.encoder.training_modules import FrozenCopy, TrainingHead
from likewise.losses import EncoderLoss, functional
from likewise.recipes.options import HeadOptions
from likewise.recipes.recipe import Reading, Recipe, TextCollator
from likewise.runs import processes
from likewise.runs.options import option


class ESimCSEOptions(HeadOptions):
    """The options of ESimCSE; the defaults are the paper's for BERT-base.

    None is SAM's: its second pass would fill the queue twice.
    """

    repetition: float = option(
        0.32, "Maximum fraction of sub-words repeated in the positive; 0 repeats at most two.", ge=0, le=1
    )
    momentum: float = option(0.995, "Momentum lambda of the encoder that fills the queue.", ge=0, le=1)
    queue: float = option(2.5, "Size of the queue, as a multiple of the batch size; 0 uses no queue.", ge=0)


class MomentumQueue(FrozenCopy):
    """The momentum encoder of ESimCSE and the queue of the vectors it made (section 3.2), first in, first out.

    The copy has no dropout, as in the authors' code.

    Args:
        momentum: lambda of theta_m <- lambda theta_m + (1 - lambda) theta_e.
    """

    queue: Tensor
    filled: Tensor

    def __init__(self, encoder: SentenceTransformer, size: int, dimension: int, momentum: float = 0.995) -> None:
        super().__init__(encoder)
        self.size, self.dimension, self.momentum = size, dimension, momentum
        self.register_buffer("queue", torch.zeros(size, dimension))  # (M, D), the oldest first
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))

    def vectors(self) -> Tensor:
        """Return the vectors in the queue, (up to M, D), the oldest first, as a copy."""
        return self.queue[self.size - int(self.filled) :].clone()

    @torch.no_grad()
    def push(self, vectors: Tensor) -> None:
        """Append vectors (B, D) to the queue, and drop the oldest."""
        self.queue.copy_(torch.cat([self.queue, vectors.to(self.queue.dtype)])[-self.size :])
        self.filled.fill_(min(self.size, int(self.filled) + len(vectors)))

    @torch.no_grad()
    def follow(self, encoder: nn.Module) -> None:
        """Update the copy's weights towards those of the trained encoder, by momentum."""
        trained = (parameter for module in saved_modules(encoder) for parameter in module.parameters())
        for own, other in zip(self.encoder.parameters(), trained, strict=True):
            own.lerp_(other, 1 - self.momentum)

    @torch.no_grad()
    def keys(self, features: dict[str, Any], head: TrainingHead | None = None) -> Tensor:
        """Encode tokens (B, T) as vectors (B, D) for the queue, through the trained encoder's head if any."""
        vectors = self.encode(features)
        return head({"sentence_embedding": vectors})["sentence_embedding"] if head else vectors


def repeated_views(
    rows: list[dict[str, Any]], own: Reading, longest: int, rate: float, seed: int
) -> dict[str, list[list[int]]]:
    """Return {'sentence': B lists of tokens, 'repeated': the same ones with repeated sub-words}.

    Args:
        own: how a sentence is cut; repetitions come on top, as in the authors' code.
        longest: tokens that the base reads.
    """
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


class ESimCSELoss(EncoderLoss[ESimCSEOptions]):
    """NT-Xent of two columns, with the queue's vectors as further negatives (Wu et al. 2022, section 3.2).

    l_i = -log exp(cos(h_i, h_i+) / tau) / (sum over j of exp(cos(h_i, h_j+) / tau) + sum over m of
    exp(cos(h_i, q_m) / tau)).

    After each forward pass in training the momentum encoder takes a step towards the trained one, and its vectors of
    the sentences, of all processes, go into the queue. A `MomentumQueue` among the encoder's modules gives both;
    without one there is no queue.

    Inputs: two columns, sentences and the same ones with repetitions. No labels.
    """

    def _loss(self, sentences: dict[str, Any], repeated: dict[str, Any]) -> Tensor:
        anchors = self.vectors(sentences)  # (B, D)
        positives, offset = self.gathered(self.vectors(repeated))
        queue = find_part(self.encoder, MomentumQueue)
        if queue:
            positives = torch.cat([positives, queue.vectors().to(positives.dtype)])
        loss = functional.nt_xent(anchors, positives, self.options.temperature, offset)
        if queue and torch.is_grad_enabled():
            queue.follow(self.encoder)
            queue.push(self.gathered(queue.keys(sentences, find_part(self.encoder, TrainingHead)))[0])
        return loss


def _encoder(base: str, options: ESimCSEOptions) -> Any:
    encoder = build_encoder(base, pooling=options.pooling, head=options.head, dropout=options.dropout)
    size = int(options.queue * options.batch_size * processes.count())
    if size:
        dimension = encoder.get_embedding_dimension()
        encoder.append(MomentumQueue.of(encoder, size=size, dimension=dimension, momentum=options.momentum))
    return encoder


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
    build_loss=ESimCSELoss,
    modules=(MomentumQueue,),
)
