"""The batches of the discriminator: the parts of the documents, their contexts, and the negatives of each context.

Letters: S sentences of a batch, C contexts, J = left + right places around the centre.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likewise.context.index import ChunkStore


def split_documents(n_documents: int, held_out: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split document numbers into a training set, a set for checkpoint selection, and a set for the reported accuracy.

    >>> [len(part) for part in split_documents(100, 0.1, seed=1)]
    [90, 5, 5]
    """
    order = np.random.default_rng([seed, 0]).permutation(n_documents)
    half = max(1, round(held_out * n_documents / 2))
    return np.sort(order[2 * half :]), np.sort(order[:half]), np.sort(order[half : 2 * half])


def training_units(store: ChunkStore, documents: np.ndarray, most: int) -> list[np.ndarray]:
    """Return the chunk numbers of each unit: one of the documents, or a part of `most` sentences of a long one."""
    begins = np.searchsorted(store.documents, documents, side="left")
    ends = np.searchsorted(store.documents, documents, side="right")
    units = []
    for begin, end in zip(begins, ends, strict=True):
        start, size = begin, 0
        for chunk in range(begin, end):
            if size and size + store.lengths[chunk] > most:
                units.append(np.arange(start, chunk))
                start, size = chunk, 0
            size += store.lengths[chunk]
        units.append(np.arange(start, end))
    return units


def epoch_batches(
    store: ChunkStore, units: list[np.ndarray], size: int, seed: int, epoch: int, all_of: bool = False
) -> Iterator[np.ndarray]:
    """Yield the chunk numbers of each batch of an epoch: units in random order, up to `size` sentences.

    A last batch of fewer is skipped where there is another, but for `all_of`.
    """
    order = np.random.default_rng([seed, 1, epoch]).permutation(len(units))
    batch: list[np.ndarray] = []
    total, yielded = 0, False
    for unit in order:
        batch.append(units[unit])
        total += int(store.lengths[units[unit]].sum())
        if total >= size:
            yield np.concatenate(batch)
            batch, total, yielded = [], 0, True
    if batch and (all_of or not yielded):
        yield np.concatenate(batch)


@dataclass(frozen=True)
class ContextBatch:
    """Contexts with their sentences, among the S sentences of the batch.

    Attributes:
        sentences: Numbers in the store, int64 (S,).
        documents: Document of each sentence, int64 (S,).
        centres: Row of the sentence that belongs to each context, int64 (C,).
        places: Rows around it, int64 (C, J); -1 for none.
    """

    sentences: np.ndarray
    documents: np.ndarray
    centres: np.ndarray
    places: np.ndarray


def batch_of_chunks(store: ChunkStore, chunks: np.ndarray) -> ContextBatch:
    """Return all sentences and contexts of the given chunks."""
    starts, counts = store.first_sentence[chunks], store.lengths[chunks]
    shift = np.cumsum(counts) - counts  # the row where each chunk begins
    sentences = np.repeat(starts - shift, counts) + np.arange(counts.sum())
    centres, places = store.places(store.contexts_of(chunks))
    # From numbers of the store to rows: both count on inside a chunk.
    moved = np.repeat(starts - shift, counts - 2)
    return ContextBatch(
        sentences,
        np.repeat(store.documents[chunks].astype(np.int64), counts),
        centres - moved,
        np.where(places < 0, -1, places - moved[:, None]),
    )


def negatives(batch: ContextBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return the possible negatives of each context as two masks, bool [C, S].

    Sentences of the same document, without centre and context, and sentences of other documents.
    """
    documents = batch.documents
    same = documents[batch.centres][:, None] == documents[None]  # (C, S)
    own = np.concatenate([batch.centres[:, None], batch.places], axis=1)  # (C, 1 + J)
    rows, columns = np.nonzero(own >= 0)
    allowed = same.copy()
    allowed[rows, own[rows, columns]] = False
    return allowed, ~same
