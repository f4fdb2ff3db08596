"""The examples of the discriminator: sentences in their own context, and in that of others.

The paper replaces the centre of a context by a sentence of the same document in half of the negative examples and by
one of the whole corpus in the other half. In training nothing is drawn: the sentences of some whole documents are
represented once, every context of theirs meets every sentence of theirs, and the loss takes the mean over what could
have been drawn (`likewise.context.discriminator.coherence_loss`). Sentences that stand in the context itself are no
negatives: next to their own copy they would be easy to tell.

Letters: S sentences, C contexts, J places around a centre.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likewise.context.chunks import ChunkStore
from likewise.context.subwords import Vocabulary


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
    units: list[np.ndarray], lengths: np.ndarray, size: int, seed: int, epoch: int
) -> Iterator[np.ndarray]:
    """Yield the chunk numbers of each batch of an epoch: units in random order, up to `size` sentences.

    A last batch of fewer is left out where there is another.
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
    if batch and not given:
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


def draw_negatives(batch: ContextBatch, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw one negative for each context as the paper does: half from the document, half from other documents.

    The batch is of chunks in rising order, so that a document's sentences stand together.

    Returns:
        int64 [C], rows of the sentences, and bool [C], whether each is of the same document. A context whose document
        has no further sentence gets one of another document (and the other way round), -1 where there is neither.
    """
    rng = np.random.default_rng([seed, 2])
    n, n_sentences = len(batch.centres), len(batch.sentences)
    of_document = np.zeros(n, bool)
    of_document[rng.permutation(n)[: n // 2]] = True
    begins = np.searchsorted(batch.documents, batch.documents[batch.centres], side="left")
    ends = np.searchsorted(batch.documents, batch.documents[batch.centres], side="right")
    drawn = np.full(n, -1)
    for i, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        same = np.setdiff1d(np.arange(begin, end), [batch.centres[i], *batch.places[i]])
        others = n_sentences - (end - begin)
        of_document[i] = len(same) > 0 and (bool(of_document[i]) or not others)
        if of_document[i]:
            drawn[i] = rng.choice(same)
        elif others:
            row = rng.integers(others)
            drawn[i] = row if row < begin else row + end - begin
    return drawn, of_document


class Sentences:
    """The truncated ids of all sentences of a store, as one array of four bytes per sub-word."""

    def __init__(self, store: ChunkStore, vocabulary: Vocabulary, max_tokens: int) -> None:
        parts, lengths = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
        for texts in store.sentences():
            encoded = vocabulary.encode_batch(texts, max_tokens)
            parts.append(np.array([i for ids in encoded for i in ids], np.int32))
            lengths.append(np.array([len(ids) for ids in encoded], np.int64))
        self._flat = np.concatenate(parts)
        self._starts = np.cumsum(np.concatenate(lengths))

    def __getitem__(self, sentences: np.ndarray) -> list[list[int]]:
        return [self._flat[self._starts[i] : self._starts[i + 1]].tolist() for i in sentences]
