"""The fast way of a mean of word vectors: large batches, as nothing is padded, and no objects for each token.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch import Tensor

from likewise.corpus.decoding import without_surrogates

_BATCH = 1024


def is_static(model: SentenceTransformer) -> bool:
    """Return whether a model starts with a mean of word vectors, and its `encode` is sentence-transformers' own."""
    own = "encode" in vars(model) or type(model).encode is not SentenceTransformer.encode
    return isinstance(model[0], StaticEmbedding) and not own


def static_vectors(
    model: SentenceTransformer, texts: Sequence[str], *, at_most: int | None = None, step: Callable[[int], object]
) -> Tensor:
    """Return the vectors (S, D) of texts, 1 or more.

    Args:
        at_most: sentences of a batch.
        step: called with the number of sentences done after each batch.
    """
    words: Any = model[0]
    size, found = at_most or _BATCH, []
    for start in range(0, len(texts), size):
        piece = [without_surrogates(text) for text in texts[start : start + size]]
        ids = [text.ids for text in words.tokenizer.encode_batch_fast(piece, add_special_tokens=False)]
        lengths = np.array([len(row) for row in ids])
        flat = np.fromiter((i for row in ids for i in row), dtype=np.int64, count=int(lengths.sum()))
        features = {
            "input_ids": torch.from_numpy(flat).to(model.device),
            "offsets": torch.from_numpy(np.cumsum(lengths) - lengths).to(model.device),
        }
        found.append(model(features)["sentence_embedding"])
        step(len(piece))
    return torch.cat(found)
