"""The examples of the discriminator: sentences in their own context, and in that of others.

The paper replaces the centre of a context by a sentence of the same document in half of the negative examples and by
one of the whole corpus in the other half. Here nothing is drawn: the sentences of some whole documents are represented
once, every context of theirs meets every sentence of theirs, and loss and accuracy are means over what could have been
drawn. Sentences that stand in the context itself are no negatives: next to their own copy they would be easy to tell.

Letters: S sentences, C contexts, J places around a centre.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likewise.context.chunks import ChunkStore


def split_documents(n_documents: int, held_out: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split document numbers into those for training, for checkpoint selection, and for the reported accuracy.

    >>> [len(part) for part in split_documents(100, 0.1, seed=1)]
    [90, 5, 5]
    """
    order = np.random.default_rng([seed, 0]).permutation(n_documents)
    half = max(1, round(held_out * n_documents / 2))
    return np.sort(order[2 * half :]), np.sort(order[:half]), np.sort(order[half : 2 * half])


def training_units(chunks_of: np.ndarray, documents: np.ndarray, lengths: np.ndarray, most: int) -> list[np.ndarray]:
    """Return the chunk numbers of each unit: a document, or a part of `most` sentences of a long one.

    `chunks_of` are the documents to take; `documents` and `lengths` are the document and the sentences of each chunk.
    """
    begins = np.searchsorted(documents, chunks_of, side="left")
    ends = np.searchsorted(documents, chunks_of, side="right")
    units = []
    for begin, end in zip(begins, ends, strict=True):
        start, held = begin, 0
        for chunk in range(begin, end):
            if held and held + lengths[chunk] > most:
                units.append(np.arange(start, chunk))
                start, held = chunk, 0
            held += lengths[chunk]
        units.append(np.arange(start, end))
    return units


def epoch_batches(
    units: list[np.ndarray], lengths: np.ndarray, size: int, seed: int, epoch: int, all_of: bool = False
) -> Iterator[np.ndarray]:
    """Yield the chunk numbers of each batch of an epoch: units in random order, up to `size` sentences.

    A last batch of fewer is left out where there is another, but for `all_of`.
    """
    order = np.random.default_rng([seed, 1, epoch]).permutation(len(units))
    batch: list[np.ndarray] = []
    held, given = 0, False
    for unit in order:
        batch.append(units[unit])
        held += int(lengths[units[unit]].sum())
        if held >= size:
            yield np.concatenate(batch)
            batch, held, given = [], 0, True
    if batch and (all_of or not given):
        yield np.concatenate(batch)


@dataclass(frozen=True)
class ContextBatch:
    """Contexts with their sentences, among the S sentences of the batch.

    Attributes:
        sentences: int64 [S], numbers in the store.
        documents: int64 [S], the document of each.
        centres: int64 [C], the row of the sentence that belongs to each context.
        places: int64 [C, J], the rows around it; -1 where there is none.
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
    numbers = store.contexts_of(chunks)
    centres, places = store.places(numbers)
    # From numbers of the store to rows: both count on inside a chunk.
    moved = np.repeat(starts - shift, np.maximum(counts - 2, 0))
    return ContextBatch(
        sentences,
        np.repeat(store.documents[chunks].astype(np.int64), counts),
        centres - moved,
        np.where(places < 0, -1, places - moved[:, None]),
    )


def negatives(batch: ContextBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return the possible negatives of each context as two masks, bool [C, S].

    Those of the same document, without centre and context, and those of other documents.
    """
    documents = batch.documents
    same = documents[batch.centres][:, None] == documents[None]  # (C, S)
    own = np.concatenate([batch.centres[:, None], batch.places], axis=1)  # (C, 1 + J)
    rows, columns = np.nonzero(own >= 0)
    allowed = same.copy()
    allowed[rows, own[rows, columns]] = False
    return allowed, ~same
