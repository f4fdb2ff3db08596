"""The loss of ArcCSE: ArcCon, and weighted entailment triplets."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.encoder.modules import dropout_off
from likewise.errors import LikewiseError
from likewise.losses import functional
from likewise.losses.arccon import ArcConLoss


class EntailmentTripletLoss(nn.Module):
    """Triplet loss: a sentence is nearer to its less masked version than to the more masked (ArcCSE, equation 4).

    Args:
        model: the encoder.
        margin: m, in units of cosine.
        dropout: True leaves dropout on (table 3, third row); the paper turns it off, since its noise would hide
            the small difference between the two versions.

    Inputs: one column that holds the sentences, the closer and the farther versions one after another (3K rows),
    or three columns of K rows each. No labels.
    """

    def __init__(self, model: SentenceTransformer, margin: float = 0.0, dropout: bool = False) -> None:
        super().__init__()
        self.model, self.margin, self.dropout = model, margin, dropout

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch of triplets: features -> scalar."""
        columns = list(sentence_features)
        with nullcontext() if self.dropout else dropout_off(self.model):
            encoded = torch.cat([self.model(dict(column))["sentence_embedding"] for column in columns])  # (3K, D)
        anchors, closer, farther = encoded.chunk(3)
        return functional.entailment_triplet(anchors, closer, farther, self.margin)


class ArcCSELoss(nn.Module):
    """The loss L_arccon + lambda L_triplet (ArcCSE, equation 5); either part may be omitted.

    Args:
        arccon: the contrastive part, or None.
        triplet: the triplet part, or None.
        triplet_weight: lambda.

    Inputs: a column of sentences; a second column of triplets (3K rows, see `EntailmentTripletLoss`) where the
    batch holds sentences long enough for them. Returns the weighted parts by name; the trainer sums and logs them.
    """

    def __init__(
        self, arccon: ArcConLoss | None, triplet: EntailmentTripletLoss | None, triplet_weight: float = 0.1
    ) -> None:
        super().__init__()
        part = arccon or triplet
        if part is None:
            raise LikewiseError("ArcCSE without ArcCon and without triplets has nothing to learn from")
        self.arccon, self.triplet, self.triplet_weight = arccon, triplet, triplet_weight
        self.model = part.model

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Return the weighted parts of a batch's loss, by name: {'contrastive': scalar, 'triplet': scalar}."""
        # The trainer exchanges `self.model` for its distributed wrapper; the parts must follow.
        for part in (self.arccon, self.triplet):
            if part is not None:
                part.model = self.model
        sentences, *rest = list(sentence_features)
        parts: dict[str, Tensor] = {}
        if self.arccon is not None:
            parts["contrastive"] = self.arccon([sentences])
        if self.triplet is not None:
            if rest:
                found = self.triplet(rest)
            elif parts:  # no sentence of this batch is long enough
                found = parts["contrastive"] * 0.0
            else:  # zero, with a graph
                found = self.model(dict(sentences))["sentence_embedding"].sum() * 0.0
            parts["triplet"] = self.triplet_weight * found
        return parts
