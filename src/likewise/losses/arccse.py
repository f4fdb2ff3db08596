"""The loss of ArcCSE: ArcCon over dropout twins, and weighted entailment triplets."""

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
from likewise.runs.processes import gather_rows, share

VECTORS = ("sentence_embedding", "saved_embedding")
"""What an encoder gives that a loss may use: the vector of training, and that of the saved model behind a head."""


class ArcConLoss(nn.Module):
    """The additive angular margin contrastive loss of each sentence with itself (ArcCSE, equation 3).

    The two views are two rows of one forward pass, so that each has its own dropout mask and the batch is padded
    and sent through the encoder once. With `margin_degrees=0` it is NT-Xent, the loss of SimCSE.

    Args:
        positive_dropout: False takes the second view without dropout (table 3, second row).

    Inputs: one column of sentences, or two (a sentence and its positive). No labels. The other processes'
    sentences are negatives too, with gradients.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        margin_degrees: float = 10.0,
        temperature: float = 0.05,
        positive_dropout: bool = True,
    ) -> None:
        super().__init__()
        self.model = model
        self.margin_degrees, self.temperature = margin_degrees, temperature
        self.positive_dropout = positive_dropout

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch: features of one or two columns, in sentence-transformers' form -> scalar."""
        return self.compute_loss_from_embeddings([one["sentence_embedding"] for one in self.views(sentence_features)])

    def views(self, sentence_features: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the encoder makes of the two views, from one column (independent dropout masks) or from two."""
        columns = list(sentence_features)
        if len(columns) > 1 or not self.positive_dropout:
            return self._two_passes(columns[0], columns[min(1, len(columns) - 1)])
        both = {
            key: torch.cat([value, value]) if isinstance(value, Tensor) else value for key, value in columns[0].items()
        }
        encoded = self.model(both)
        vectors = {key: encoded[key] for key in VECTORS if key in encoded}  # (2B, D)
        first, second = ({key: value.chunk(2)[i] for key, value in vectors.items()} for i in range(2))
        return first, second

    def _two_passes(self, first: dict[str, Any], second: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        anchors = self.model(dict(first))
        with nullcontext() if self.positive_dropout else dropout_off(self.model):
            return anchors, self.model(dict(second))

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None = None) -> Tensor:
        """Return the loss of anchors (B, D) and positives (B, D)."""
        anchors, positives = embeddings
        positives, offset = gather_rows(positives)
        return functional.arccon(anchors, positives, self.margin_degrees, self.temperature, offset)


class EntailmentTripletLoss(nn.Module):
    """Triplet loss: a sentence is nearer to its less masked version than to the more masked (ArcCSE, equation 4).

    Args:
        margin: m, in units of cosine.
        dropout: True leaves dropout on (table 3, third row); the paper turns it off, since its noise would hide
            the small difference between the two versions.

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
