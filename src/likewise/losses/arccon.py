"""ArcCon over dropout twins, as a sentence-transformers loss."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.encoder.modules import dropout_off
from likewise.losses import functional


class ArcConLoss(nn.Module):
    """The additive angular margin contrastive loss of each sentence with itself (ArcCSE, equation 3).

    The two views are two rows of one forward pass, so that each has its own dropout mask and the batch is padded
    and sent through the encoder once. With `margin_degrees=0` it is NT-Xent, the loss of SimCSE.

    Args:
        model: the encoder; its sentence embedding (B, D) is compared.
        margin_degrees: the margin m, in degrees.
        temperature: tau.
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
        columns = list(sentence_features)
        views = self.two_views(*columns[:2]) if len(columns) > 1 else self.twins(columns[0])
        return self.compute_loss_from_embeddings(list(views))

    def twins(self, features: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return two views (B, D) and (B, D) of the same sentences, from independent dropout masks."""
        if not self.positive_dropout:
            return self.two_views(features, features)
        doubled = {
            key: torch.cat([value, value]) if isinstance(value, Tensor) else value for key, value in features.items()
        }
        first, second = self.model(doubled)["sentence_embedding"].chunk(2)  # (2B, D)
        return first, second

    def two_views(self, first: dict[str, Any], second: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return views from two columns, the second optionally without dropout."""
        anchors = self.model(dict(first))["sentence_embedding"]
        with nullcontext() if self.positive_dropout else dropout_off(self.model):
            return anchors, self.model(dict(second))["sentence_embedding"]

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None = None) -> Tensor:
        """Return the loss of anchors (B, D) and positives (B, D)."""
        anchors, positives = embeddings
        positives, offset = functional.gather_positives(positives)
        return functional.arccon(anchors, positives, self.margin_degrees, self.temperature, offset)
