"""Contrastive tension: two encoders, equal at first, learn to agree on a sentence and to differ on two.

Carlsson et al. 2021, "Semantic Re-tuning with Contrastive Tension"; the loss is sentence-transformers' own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from likewise.encoder.poolings import PoolingMode
from likewise.recipes import OptionError, Reading, Recipe, TextCollator, TrainingOptions, check_encoder, option

if TYPE_CHECKING:
    from torch import nn


class CTOptions(TrainingOptions):
    """The options of contrastive tension."""

    batch_size: int = option(16, "Number of pairs in a forward pass.", ge=3)
    learning_rate: float = option(
        1e-5, "Initial learning rate of RMSprop; it falls four times, by a fifth of this value."
    )
    rate_steps: int = option(500, "Number of updates after which the learning rate falls.", gt=0)
    negatives: int = option(
        7, "Number of negative pairs (different sentences) for each positive pair (equal sentences).", gt=0
    )
    pooling: PoolingMode = option("mean", "Pooling of token vectors into the sentence vector.")

    def _check(self) -> None:
        super()._check()
        if self.batch_size % (self.negatives + 1):
            raise OptionError(f"batch_size {self.batch_size} is not a multiple of negatives + 1 = {self.negatives + 1}")


def tension_pairs(rows: list[dict[str, Any]], negatives: int) -> dict[str, list[str]]:
    """Return {'first': B sentences, 'second': B sentences}: every (negatives + 1)th is paired with itself.

    Each other one is paired with the next such one. Rows of a batch are drawn at random, so that the next one is a
    random one; each sentence is seen by both encoders.
    """
    first = [row["sentence"] for row in rows]
    apart = [i for i in range(len(first)) if i % (negatives + 1)]
    second = list(first)
    for here, there in zip(apart, [*apart[1:], *apart[:1]], strict=True):
        second[here] = first[there]
    return {"first": first, "second": second}


def _encoder(base: str, options: CTOptions) -> Any:
    from likewise.encoder import EncoderCopy, build_encoder

    encoder = build_encoder(base, pooling=options.pooling, head=False)
    # Both are trained; the encoder is what sentence-transformers calls model2, the one that is used afterwards.
    encoder.append(EncoderCopy.of(encoder))
    return encoder


def _loss(encoder: Any, options: CTOptions) -> nn.Module:
    from compared.ct_loss import TensionLoss

    return TensionLoss(encoder)


def _optimizer(encoder: Any, options: CTOptions, steps: int) -> tuple[Any, Any]:
    import torch

    trained = [parameter for parameter in encoder.parameters() if parameter.requires_grad]
    # Decay and constant of TensorFlow's RMSprop, which the authors' code leaves as they are.
    optimizer = torch.optim.RMSprop(
        trained, lr=options.learning_rate, alpha=0.9, eps=1e-7, weight_decay=options.weight_decay
    )
    schedule = torch.optim.lr_scheduler.LambdaLR
    return optimizer, schedule(optimizer, lambda step: 1 - 0.2 * min(4, step // options.rate_steps))


PAPER = CTOptions(max_length=75, max_grad_norm=0.0, length_batches=False)  # of the authors' code

CT = Recipe(
    name="ct",
    summary="Contrastive tension: two encoders agree on equal sentences and differ on different ones.",
    source="Carlsson et al. 2021, Contrastive Tension",
    presets={"cpu": PAPER.updated(max_length=32, eval_steps=50), "paper": PAPER},
    build_encoder=_encoder,
    build_collator=lambda encoder, options, seed: TextCollator(
        partial(tension_pairs, negatives=options.negatives), Reading.of(encoder, options.max_length)
    ),
    build_loss=_loss,
    check_base=lambda base, options: check_encoder(base, "train ct", truncate_dim="it compares whole vectors"),
    build_optimizer=_optimizer,
)
