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
from likewise.runs.processes import gather_rows

VECTORS = ("sentence_embedding", "saved_embedding")
"""What an encoder gives that a loss may use: the vector of training, and that of the saved model behind a head."""


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
