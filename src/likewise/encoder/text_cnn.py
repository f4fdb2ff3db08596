"""The modules of GCLSR's encoder: parameter-free word attention, and TextCNN.

Word vectors are scaled by their importance to the sentence (algorithm 1); then TextCNN (Kim 2014), as in section 4.1:
convolutions over words, ReLU, the maximum over positions.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.encoder.modules import Features, SavedModule, TrainingOnly

REGIONS = (1, 1, 1, 6, 15, 20)
"""GCLSR, section 4.1."""
GROUP = 32
"""Sentences of near-equal length that are convolved together in training; the vectors do not depend on it."""
FILL = 1e-9
"""What algorithm 1 puts instead of a score with padding (and not -1e9, as attention with a softmax has)."""


class TextCNN(SavedModule):
    """A convolution of word vectors (B, T, D) to a sentence vector (B, F R), with F filters for each of R regions.

    The vector of a sentence does not depend on its batch. A filter of region r is applied at each position where it
    covers a word, with r - 1 zeros before and after the sentence. Without `edges`, it is only applied at positions
    whose r words are all in the sentence; a shorter sentence then has one position, padded with zeros.

    Args:
        regions: Window sizes of the filters in words, one per bank.
        edges: Whether to count positions at which a filter exceeds the sentence; models without this setting do not.
    """

    def __init__(
        self, dimension: int, regions: Sequence[int] = REGIONS, filters: int = 300, edges: bool = False
    ) -> None:
        super().__init__()
        self.regions = [int(region) for region in regions]
        self.dimension, self.filters, self.edges = dimension, filters, edges
        self.banks = nn.ModuleList(nn.Conv1d(dimension, filters, region) for region in self.regions)

    def get_embedding_dimension(self) -> int:
        """Return F R, the size of the sentence vector."""
        return self.filters * len(self.regions)

    def forward(self, features: Features, **kwargs: object) -> Features:
        """Map 'token_embeddings' (B, T, D) and 'attention_mask' (B, T) to 'sentence_embedding' (B, F R)."""
        mask = features["attention_mask"]
        vectors = features["token_embeddings"] * mask[:, :, None]  # (B, T, D), padding is zero
        lengths = mask.sum(dim=1)  # (B,)
        if self.training and len(vectors) > GROUP:
            # A training batch is padded to its longest sentence, four times the others: nearly equal ones go together.
            groups = lengths.argsort().split(GROUP)
            parts = [self._vectors(vectors[rows, : int(lengths[rows[-1]])], lengths[rows]) for rows in groups]
            back = torch.cat(groups).argsort()
            features["sentence_embedding"] = torch.cat(parts)[back]
        else:
            features["sentence_embedding"] = self._vectors(vectors, lengths)
        return features

    def _vectors(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Return the sentence vectors (B, F R) of word vectors (B, T, D) and lengths (B,)."""
        by_number = vectors.transpose(1, 2).contiguous()  # (B, D, T)
        return torch.cat([_most(bank, by_number, lengths, self.edges) for bank in self.banks], dim=1)


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


class TrainingAttention(TrainingOnly):
    """Word attention in training, and the identity in evaluation, as the authors of GCLSR ran it."""

    def _in_training(self, features: Features) -> Features:
        return {"token_embeddings": attend(features["token_embeddings"], features["attention_mask"])}


def _most(bank: nn.Module, vectors: Tensor, lengths: Tensor, edges: bool) -> Tensor:
    """Return the ReLU of the maximum over real positions: (B, D, T), (B,) to (B, F)."""
    (region,) = bank.kernel_size  # type: ignore[misc]
    n_words = vectors.shape[2]
    if edges:
        vectors = F.pad(vectors, (region - 1, region - 1))
        last = (lengths + region - 2).clamp(min=0)  # (B,) the last position that counts
    else:
        vectors = F.pad(vectors, (0, max(0, region - n_words)))
        last = (lengths - region).clamp(min=0)
    values = bank(vectors)  # (B, F, P), P positions
    outside = torch.arange(values.shape[2], device=values.device)[None] > last[:, None]  # (B, P)
    # ReLU is monotone, so it may come after the maximum; the gradient goes to one position.
    return values.masked_fill(outside[:, None, :], -torch.inf).max(dim=2).values.relu()
