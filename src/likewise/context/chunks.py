"""Chunks of documents, and the left and right context of a sentence inside its chunk.

A chunk is a run of consecutive sentences of one document. It is what retrieval finds and what gives at most one
context to a sentence's context set (section 3.3 of the paper). A context is a place in a chunk: the sentences
before it and after it, without the sentence that stands there. Every context has a sentence on both sides, so a
chunk of n sentences has n - 2 of them, at the positions 1 to n - 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from likewise.context.workspace import ContextError

if TYPE_CHECKING:
    from likewise.corpus import Document

FEWEST = 3
"""Sentences of the shortest chunk that has a context."""
_AT_ONCE = 1000


@dataclass(frozen=True)
class Chunk:
    """A run of consecutive sentences of one document; documents are numbered from 0 in reading order."""

    document: int
    sentences: tuple[str, ...]


def cut_chunks(document: int, sentences: tuple[str, ...], size: int) -> Iterator[Chunk]:
    """Cut a document into the fewest chunks of at most `size` sentences, of near-equal length.

    A document of fewer than three sentences gives none: nothing in it has a context.

    >>> [len(chunk.sentences) for chunk in cut_chunks(0, tuple("abcdefghijk"), 5)]
    [4, 4, 3]
    """
    if len(sentences) < FEWEST:
        return
    parts = -(-len(sentences) // size)
    for part in range(parts):
        begin, end = part * len(sentences), (part + 1) * len(sentences)
        yield Chunk(document, sentences[-(-begin // parts) : -(-end // parts)])


def read_chunks(
    documents: Iterable[Document], size: int, max_documents: int = 0, max_words: int = 0
) -> Iterator[Chunk]:
    """Yield the chunks of documents, in order, of at most `size` sentences.

    It stops after `max_documents` that gave a chunk, or with the document that reaches `max_words` words (0: no limit).
    """
    number = words = 0
    for document in documents:
        found = False
        for chunk in cut_chunks(number, document.sentences, size):
            found = True
            if max_words:
                words += sum(len(sentence.split()) for sentence in chunk.sentences)
            yield chunk
        number += found
        if (max_documents and number >= max_documents) or (max_words and words >= max_words):
            return


def write_chunks(path: Path, chunks: Iterable[Chunk]) -> None:
    """Write chunks to an Arrow file, in batches."""
    import pyarrow as pa

    schema = pa.schema([("document", pa.int32()), ("sentences", pa.list_(pa.string()))])
    rest = iter(chunks)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        while batch := list(islice(rest, _AT_ONCE)):
            rows = {"document": [c.document for c in batch], "sentences": [list(c.sentences) for c in batch]}
            writer.write_batch(pa.record_batch(rows, schema=schema))


class ChunkStore:
    """Chunks mapped from disk, with the contexts they hold.

    Sentences and contexts have numbers too, in the order of the chunks: those of chunk i begin at
    `first_sentence[i]` and `first_context[i]`.

    Attributes:
        documents: int32 [chunks], the document of each chunk.
        lengths: int64 [chunks], its number of sentences.
        first_sentence, first_context: int64 [chunks + 1]; the last entry is the number of all.

    Args:
        path: what `write_chunks` wrote.
        left, right: most sentences of a left and of a right context.

    Raises:
        ContextError: there is no such file, or it is not one of chunks.
    """

    def __init__(self, path: Path, left: int, right: int) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self.path, self.left, self.right = path, left, right
        try:
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()  # zero copy
            self.documents: np.ndarray = table["document"].to_numpy()
            self._sentences = table["sentences"]
            self._flat = pc.list_flatten(self._sentences)  # zero copy too
        except (OSError, ValueError, KeyError) as error:  # pyarrow's errors are OSError and ValueError
            raise ContextError(f"{path} cannot be read as chunks ({error}): make the index again") from None
        self.lengths = pc.list_value_length(self._sentences).to_numpy().astype(np.int64)
        self.first_sentence = np.concatenate([[0], np.cumsum(self.lengths)])
        # A chunk has two contexts fewer than sentences.
        self.first_context = self.first_sentence - 2 * np.arange(len(self.first_sentence))

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, chunk: int) -> Chunk:
        return Chunk(int(self.documents[chunk]), tuple(self._sentences[chunk].as_py()))

    @property
    def n_contexts(self) -> int:
        """The number of contexts in all chunks."""
        return int(self.first_context[-1])

    def texts(self) -> list[str]:
        """Return all sentences in order."""
        return self._flat.to_pylist()

    def contexts_of(self, chunks: np.ndarray) -> np.ndarray:
        """Return the indices of all contexts of the given chunks, int64, chunk after chunk."""
        starts = self.first_context[chunks]
        counts = self.first_context[chunks + 1] - starts
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(starts, counts) + offsets

    def positions(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the chunk of each context, given by index, and its position in the chunk."""
        chunks = np.searchsorted(self.first_context, contexts, side="right") - 1
        return chunks, contexts - self.first_context[chunks] + 1

    def places(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of the sentences in and around C contexts.

        Returns:
            int64 [C], the sentence that stands in the place, and int64 [C, left + right], those before it (farthest
            first) and after it (nearest first); -1 where the chunk has none.
        """
        chunks, positions = self.positions(contexts)
        offsets = np.array([*range(-self.left, 0), *range(1, self.right + 1)])
        rows = positions[:, None] + offsets
        first = self.first_sentence[chunks]
        inside = (rows >= 0) & (rows < self.lengths[chunks][:, None])
        return first + positions, np.where(inside, first[:, None] + rows, -1)

    def preceding(self, contexts: np.ndarray) -> list[str]:
        """Return the sentence before the position of each context."""
        return self._flat.take(self.places(contexts)[0] - 1).to_pylist()

    def around(self, contexts: np.ndarray) -> list[list[str]]:
        """Return the sentences of each context, by index, and first the one that stands in its gap."""
        rows = np.column_stack(self.places(contexts))
        inside = rows >= 0
        texts = iter(self._flat.take(rows[inside]).to_pylist())
        return [list(islice(texts, int(count))) for count in inside.sum(axis=1)]

    def side_texts(self, contexts: np.ndarray, most: int | None = None) -> tuple[list[str], list[str]]:
        """Return the text to the left and that to the right of each context, of at most `most` sentences each."""
        _, places = self.places(contexts)
        before, after = places[:, : self.left], places[:, self.left :]
        if most is not None:
            before, after = before[:, max(0, self.left - most) :], after[:, :most]
        texts = self.around(contexts)
        lefts, rights = [], []
        for text, row, near, behind in zip(texts, places[:, : self.left], before, after, strict=True):
            count = int((row >= 0).sum())
            left, right = text[1 : 1 + count], text[1 + count :]
            lefts.append(" ".join(left[count - int((near >= 0).sum()) :]))
            rights.append(" ".join(right[: int((behind >= 0).sum())]))
        return lefts, rights
