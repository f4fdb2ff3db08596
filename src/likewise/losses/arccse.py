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


class ArcCSELoss(nn.Module):
    """The loss L_arccon + lambda L_triplet (ArcCSE, equation 5); either part may be left out.

    ArcCon (equation 3) compares each sentence with itself. The two views are two rows of one forward pass, so that each
    has its own dropout mask and the batch is padded and sent through the encoder once. With a margin of 0 it is
    NT-Xent, the loss of SimCSE. By the triplets (equation 4) a sentence is nearer to its less masked version than to
    the more masked one.

    Args:
        margin_degrees: the margin of ArcCon; None leaves ArcCon out.
        positive_dropout: False takes the second view without dropout (table 3, second row).
        triplet_weight: lambda; 0 leaves the triplets out.
        triplet_dropout: True leaves dropout on in the triplets (table 3, third row); the paper turns it off, since its
            noise would hide the small difference between the two versions.
        keep_weight: weight of `functional.listwise_keep`, which is not in the paper: in both views the sentences of the
            batch stay as near to each other as a `FrozenCopy` among the model's modules has them.
        shortened: the second column holds the second view of ArcCon.

    Inputs: a column of sentences; one of their second views if `shortened`; a last one of K sentences, their closer and
    their farther versions, one after another, where the batch holds sentences long enough for them. No labels. Returns
    the weighted parts by name; the trainer sums and logs them.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        margin_degrees: float | None = 10.0,
        temperature: float = 0.05,
        *,
        positive_dropout: bool = True,
        triplet_weight: float = 0.1,
        triplet_margin: float = 0.0,
        triplet_dropout: bool = False,
        triplet_temperature: float = 0.0,
        keep_weight: float = 0.0,
        shortened: bool = False,
    ) -> None:
        super().__init__()
        if margin_degrees is None and not triplet_weight:
            raise LikewiseError("ArcCSE without ArcCon and without triplets has nothing to learn from")
        self.model, self.margin_degrees, self.temperature = model, margin_degrees, temperature
        self.positive_dropout, self.triplet_dropout = positive_dropout, triplet_dropout
        self.triplet_weight, self.keep_weight, self.shortened = triplet_weight, keep_weight, shortened
        self.hinge = {"margin": triplet_margin, "temperature": triplet_temperature}
        # In a dict: the copy is a part of the encoder already.
        self._base: dict[str, Any] = {"copy": find_part(model, FrozenCopy)}
        if keep_weight and (margin_degrees is None or self._base["copy"] is None):
            raise LikewiseError("keep_weight needs ArcCon, and a FrozenCopy among the model's modules")

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Return the weighted parts of a batch's loss, by name: {'contrastive': scalar, 'triplet': scalar}."""
        columns = list(sentence_features)
        rest = columns[1 + self.shortened :]
        parts: dict[str, Tensor] = {}
        if self.margin_degrees is not None:
            views = self.views(columns[: 1 + self.shortened])
            anchors, positives = (view["sentence_embedding"] for view in views)
            positives, offset = gather_rows(positives)
            parts["contrastive"] = functional.arccon(anchors, positives, self.margin_degrees, self.temperature, offset)
            if self.keep_weight:
                parts["keep"] = self.keep_weight * self._kept(columns[0], views)
        if self.triplet_weight:
            if rest:
                found = self._triplets(rest[0])
            elif parts:  # no sentence of this batch is long enough
                found = parts["contrastive"] * 0.0
            else:  # zero, with a graph
                found = self.model(dict(columns[0]))["sentence_embedding"].sum() * 0.0
            # Other processes may have more triplets, or none.
            parts["triplet"] = self.triplet_weight * found * share(sum(len(one["input_ids"]) for one in rest))
        return parts

    def views(self, columns: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the encoder makes of the two views, from one column (independent dropout masks) or from two."""
        if len(columns) > 1 or not self.positive_dropout:
            anchors = self.model(dict(columns[0]))
            with nullcontext() if self.positive_dropout else dropout_off(self.model):
                return anchors, self.model(dict(columns[-1]))
        both = {
            key: torch.cat([value, value]) if isinstance(value, Tensor) else value for key, value in columns[0].items()
        }
        encoded = self.model(both)
        vectors = {key: encoded[key] for key in VECTORS if key in encoded}  # (2B, D)
        first, second = ({key: value.chunk(2)[i] for key, value in vectors.items()} for i in range(2))
        return first, second

    def _kept(self, sentences: dict[str, Tensor], views: Iterable[dict[str, Any]]) -> Tensor:
        targets = self._base["copy"].encode(sentences)  # (B, D)
        all_targets, offset = gather_rows(targets)
        kept = [view.get("saved_embedding", view["sentence_embedding"]) for view in views]
        first, second = (
            functional.listwise_keep(one, targets, self.temperature, (gather_rows(one)[0], all_targets), offset)
            for one in kept
        )
        return (first + second) / 2

    def _triplets(self, features: dict[str, Tensor]) -> Tensor:
        with nullcontext() if self.triplet_dropout else dropout_off(self.model):
            anchors, closer, farther = self.model(dict(features))["sentence_embedding"].chunk(3)
        return functional.entailment_triplet(anchors, closer, farther, **self.hinge)
