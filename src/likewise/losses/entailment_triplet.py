"""The entailment triplet loss, as a sentence-transformers loss."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.encoder.modules import dropout_off
from likewise.losses import functional


class EntailmentTripletLoss(nn.Module):
    """A sentence is nearer to its version masked less than to the one masked more (ArcCSE, equation 4).

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
        self.model = model
        self.margin = margin
        self.dropout = dropout

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """The loss of a batch of triplets: features -> scalar."""
        columns = list(sentence_features)
        with nullcontext() if self.dropout else dropout_off(self.model):
            encoded = torch.cat([self.model(dict(column))["sentence_embedding"] for column in columns])  # (3K, D)
        return self.compute_loss_from_embeddings(list(encoded.chunk(3)))

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None = None) -> Tensor:
        """The loss of sentences, closer and farther versions, each (K, D)."""
        anchors, closer, farther = embeddings
        return functional.entailment_triplet(anchors, closer, farther, self.margin)

    def get_config_dict(self) -> dict[str, Any]:
        """What the model card says of the loss."""
        return {"margin": self.margin, "dropout": self.dropout}
