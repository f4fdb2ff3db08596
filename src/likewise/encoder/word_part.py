"""The words of a corpus as a part of the sentence vector: rare ones weigh more, and equal ones match exactly.

A sentence encoder smooths over the terms of a domain that it has rarely seen; BM25 sees them and nothing else. Here
both are one vector of the same length. Letters of the shapes: B sentences, T tokens, D embedding, V pieces of the
vocabulary, R rows of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.encoder.modules import SavedModule

_SHARED = 2048  # rows for the pieces that a corpus does not hold


class WordPart(SavedModule):
    """A module that adds the weighted sum of a sentence's word-piece vectors to its sentence vector.

    v = x / |x| + weight w / |w|, scaled to length 1, where w is the sum of the vectors of the sentence's pieces. Pieces
    that the corpus does not hold share some rows of the table, and special tokens have the vector zero.

    Args:
        pieces: V.
        rows: R, rows of the table besides that of zeros.
        dimension: D.
        weight: of the part; 0 leaves the sentence vector as it is.
    """

    config_keys: list[str] = ["pieces", "rows", "dimension", "weight"]  # noqa: RUF012 - the base class declares it so

    row: Tensor

    def __init__(self, pieces: int, rows: int, dimension: int, weight: float = 0.5) -> None:
        super().__init__()
        self.pieces, self.rows, self.dimension, self.weight = pieces, rows, dimension, weight
        self.register_buffer("row", torch.zeros(pieces, dtype=torch.int64))  # (V,) row of the table
        self.table = nn.Parameter(torch.zeros(rows + 1, dimension))  # row 0 stays zero

    def words(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return w / |w|, (B, D), of ids and mask, (B, T) each."""
        rows = self.row[ids] * mask  # (B, T)
        return F.normalize(F.embedding(rows, self.table, padding_idx=0).sum(dim=1), dim=1)

    def words_of(self, ids: Tensor, starts: Tensor) -> Tensor:
        """Return what `words` returns of the ids of all sentences in a row and where each starts; a fast gradient.

        The gradient of the table is sparse, as an update reaches a hundredth of its rows.
        """
        rows = self.row[ids]
        return F.normalize(F.embedding_bag(rows, self.table, starts, mode="sum", sparse=True, padding_idx=0), dim=1)

    def combine(self, vectors: Tensor, words: Tensor) -> Tensor:
        """Return the vectors (B, D) of sentence vectors and of what `words` returned, (B, D) each."""
        return F.normalize(F.normalize(vectors, dim=1) + self.weight * words, dim=1)

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Replace 'sentence_embedding' (B, D), from 'input_ids' and 'attention_mask' (B, T)."""
        words = self.words(features["input_ids"], features["attention_mask"])
        features["sentence_embedding"] = self.combine(features["sentence_embedding"], words)
        return features

    def get_embedding_dimension(self) -> int:
        """Return D."""
        return self.dimension


def fit_word_part(
    ids: Sequence[np.ndarray], tokenizer: Any, embeddings: np.ndarray, dimension: int, seed: int
) -> WordPart:
    """Return the part for a corpus: each piece's vector is its idf times the sum of two unit vectors.

    One is random, so that equal pieces match and others do not; the other is the piece's input embedding, centred, so
    that similar pieces match a little. It is left out where embeddings have another length than the sentence vectors.

    Args:
        ids: the tokens of each passage of the corpus.
        tokenizer: says which pieces are special or hold no letter or digit; these have the vector zero.
        embeddings: (V, E) input embeddings of the base.
        dimension: D.
        seed: fixes the random vectors.
    """
    count = len(embeddings)
    frequency = np.zeros(count, dtype=np.int64)  # (V,) passages that hold the piece
    for row in ids:
        frequency[np.unique(row)] += 1
    names = tokenizer.convert_ids_to_tokens(list(range(min(count, len(tokenizer)))))
    silent = np.ones(count, dtype=bool)
    silent[[i for i, name in enumerate(names) if any(sign.isalnum() for sign in name or "")]] = False
    silent[list(tokenizer.all_special_ids)] = True
    seen = np.flatnonzero((frequency > 0) & ~silent)
    unseen = np.flatnonzero((frequency == 0) & ~silent)
    idf = np.log((1 + len(ids)) / (1 + frequency[seen]))  # 0 for a piece of every passage
    table = np.random.default_rng([seed, 7]).standard_normal((len(seen) + _SHARED, dimension)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    if embeddings.shape[1] == dimension:
        weight = frequency[seen] * idf
        own = embeddings[seen] - weight @ embeddings[seen] / max(weight.sum(), 1e-9)
        table[: len(seen)] += own / np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-9)
    table[: len(seen)] *= idf[:, None]
    table[len(seen) :] *= 2**0.5 * np.log(1 + len(ids))  # as long as a piece of a single passage
    part = WordPart(count, len(table), dimension)
    part.row[torch.from_numpy(seen)] = torch.arange(1, len(seen) + 1)
    part.row[torch.from_numpy(unseen)] = torch.from_numpy(len(seen) + 1 + unseen % _SHARED)
    with torch.no_grad():
        part.table[1:] = torch.from_numpy(table)
    return part
