"""The loss of ArcCSE: ArcCon, and weighted entailment triplets."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.encoder.encoder_copy import FrozenCopy
from likewise.encoder.modules import dropout_off, find_part
from likewise.errors import LikewiseError
from likewise.losses import functional
from likewise.losses.arccon import ArcConLoss
from likewise.runs.processes import gather_rows, share


class EntailmentTripletLoss(nn.Module):
    """Triplet loss: a sentence is nearer to its less masked version than to the more masked (ArcCSE, equation 4).

    Args:
        model: the encoder.
        margin: m, in units of cosine.
        dropout: True leaves dropout on (table 3, third row); the paper turns it off, since its noise would hide
            the small difference between the two versions.
        temperature: see `functional.entailment_triplet`.

    Inputs: one column that holds the sentences, the closer and the farther versions one after another (3K rows),
    or three columns of K rows each. No labels.
    """

    def __init__(
        self, model: SentenceTransformer, margin: float = 0.0, dropout: bool = False, temperature: float = 0.0
    ) -> None:
        super().__init__()
        self.model, self.margin, self.dropout, self.temperature = model, margin, dropout, temperature

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch of triplets: features -> scalar."""
        columns = list(sentence_features)
        with nullcontext() if self.dropout else dropout_off(self.model):
            encoded = torch.cat([self.model(dict(column))["sentence_embedding"] for column in columns])  # (3K, D)
        anchors, closer, farther = encoded.chunk(3)
        return functional.entailment_triplet(anchors, closer, farther, self.margin, self.temperature)


class ArcCSELoss(nn.Module):
    """The loss L_arccon + lambda L_triplet (ArcCSE, equation 5); either part may be omitted.

    Args:
        arccon: the contrastive part, or None.
        triplet: the triplet part, or None.
        triplet_weight: lambda.
        keep_weight: weight of `functional.listwise_keep`, which is not in the paper: in both views the sentences of the
            batch stay as near to each other as a `FrozenCopy` among the model's modules has them.
        shortened: the second column holds the second view of ArcCon.

    Inputs: a column of sentences; one of their second views if `shortened`; a last one of triplets (3K rows, see
    `EntailmentTripletLoss`) where the batch holds sentences long enough for them. Returns the weighted parts by name;
    the trainer sums and logs them.
    """

    def __init__(
        self,
        arccon: ArcConLoss | None,
        triplet: EntailmentTripletLoss | None,
        triplet_weight: float = 0.1,
        keep_weight: float = 0.0,
        shortened: bool = False,
    ) -> None:
        super().__init__()
        part = arccon or triplet
        if part is None:
            raise LikewiseError("ArcCSE without ArcCon and without triplets has nothing to learn from")
        self.arccon, self.triplet, self.triplet_weight = arccon, triplet, triplet_weight
        self.model, self.keep_weight, self.shortened = part.model, keep_weight, shortened
        # In a dict: the copy is a part of the encoder already.
        self._base: dict[str, Any] = {"copy": find_part(part.model, FrozenCopy)}
        if keep_weight and (arccon is None or self._base["copy"] is None):
            raise LikewiseError("keep_weight needs ArcCon, and a FrozenCopy among the model's modules")

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Return the weighted parts of a batch's loss, by name: {'contrastive': scalar, 'triplet': scalar}."""
        # The trainer may exchange `self.model` for a wrapper of it; the parts must follow.
        for part in (self.arccon, self.triplet):
            if part is not None:
                part.model = self.model
        columns = list(sentence_features)
        sentences, rest = columns[0], columns[1 + self.shortened :]
        parts: dict[str, Tensor] = {}
        if self.arccon is not None:
            views = self.arccon.views(columns[: 1 + self.shortened])
            parts["contrastive"] = self.arccon.compute_loss_from_embeddings(
                [view["sentence_embedding"] for view in views]
            )
            if self.keep_weight:
                targets = self._base["copy"].encode(sentences)  # (B, D)
                kept = [view.get("saved_embedding", view["sentence_embedding"]) for view in views]
                all_targets, offset = gather_rows(targets)
                divergences = [
                    functional.listwise_keep(
                        one, targets, self.arccon.temperature, (gather_rows(one)[0], all_targets), offset
                    )
                    for one in kept
                ]
                parts["keep"] = self.keep_weight * (divergences[0] + divergences[1]) / 2
        if self.triplet is not None:
            if rest:
                found = self.triplet(rest)
            elif parts:  # no sentence of this batch is long enough
                found = parts["contrastive"] * 0.0
            else:  # zero, with a graph
                found = self.model(dict(sentences))["sentence_embedding"].sum() * 0.0
            # Other processes may have more triplets, or none.
            parts["triplet"] = self.triplet_weight * found * share(sum(len(one["input_ids"]) for one in rest))
        return parts
