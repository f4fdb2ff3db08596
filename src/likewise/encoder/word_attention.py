"""The parameter-free word attention of GCLSR: word vectors scaled by their importance to the sentence."""

import math
from typing import Any

from torch import Tensor

from likewise.encoder.modules import SavedModule, TrainingOnly

FILL = 1e-9
"""What algorithm 1 puts in the place of a score with padding (and not -1e9, as attention with a softmax has)."""


def attend(vectors: Tensor, mask: Tensor) -> Tensor:
    """Apply self-attention to word vectors (GCLSR, algorithm 1): S_i x_i, with the importance S_i of word i.

    s_ij = x_i . x_j / sqrt(D) where both i and j are words, and 1e-9 elsewhere; S_i = sum over j of s_ij.
    As there is no softmax, the sum goes inside: S_i = x_i . (sum over the words j of x_j) / sqrt(D) + 1e-9 per padding.
    This is the same number, in time and memory T D instead of T T D.

    Args:
        vectors: (B, T, D) word vectors.
        mask: (B, T) 1 for a word, 0 for padding.

    Returns:
        (B, T, D); zero where a padding's vector is zero.
    """
    words = mask.to(vectors.dtype)[:, :, None]  # (B, T, 1)
    whole = (vectors * words).sum(dim=1, keepdim=True)  # (B, 1, D)
    scores = (vectors * whole).sum(dim=2, keepdim=True) / math.sqrt(vectors.shape[2])  # (B, T, 1)
    n_filled = mask.shape[1] - words * words.sum(dim=1, keepdim=True)  # (B, T, 1) pairs (i, j) with a padding
    return (scores * words + FILL * n_filled) * vectors


class WordAttention(SavedModule):
    """A module that applies `attend` to the token embeddings, in training and in evaluation."""

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Apply `attend` to 'token_embeddings' (B, T, D)."""
        features["token_embeddings"] = attend(features["token_embeddings"], features["attention_mask"])
        return features


class TrainingAttention(TrainingOnly):
    """Word attention in training, and the identity in evaluation, as the authors of GCLSR ran it."""

    def _in_training(self, features: dict[str, Any]) -> dict[str, Any]:
        return {"token_embeddings": attend(features["token_embeddings"], features["attention_mask"])}
