"""The stage `index` of a workspace: documents as chunks on disk, the contexts in them, and their retrieval by TF-IDF.

A chunk is a run of consecutive sentences of one document. It is what retrieval finds, and it gives at most one context
to a sentence's context set (section 3.3 of the paper). A context is a place in a chunk: the sentences before and after
it, without the sentence in it. Every context has a sentence on both sides, so a chunk of n sentences has n - 2 of them,
at the positions 1 to n - 2.

Words and bigrams are hashed, so no vocabulary is held and a corpus of any size is read once; weights and hashing are
scikit-learn's: (1 + ln tf) (1 + ln((1 + n) / (1 + df))), every chunk of length 1. The transpose is stored, a row a
word: a sentence of 20 words touches 40 rows and no others. While it is made, all counts are in memory: about 30 bytes a
word of the corpus.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from likewise.context.stage_options import IndexOptions
from likewise.context.workspace import QUIET, ContextError, Stage, Workspace
from likewise.corpus import CorpusOptions, read_documents
from likewise.corpus.corpus_options import Spec
from likewise.corpus.sources import find_sources
from likewise.corpus.words import word_count
from likewise.errors import counted, unread
from likewise.runs.job import Resume
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record, checksum

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import HashingVectorizer

    from likewise.corpus import Document

FEWEST = 3
"""Sentences of the shortest chunk that has a context."""
_AT_ONCE = 1000
_CHUNKS, RETRIEVAL = "chunks.arrow", "retrieval"
_ARRAYS = ("starts", "chunks", "weights", "idf", "shape")
_TEXTS_AT_ONCE = 5_000


@dataclass(frozen=True)
class Chunk:
    """A sequence of consecutive sentences of one document; documents are numbered from 0 in reading order."""

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
    documents: Iterable[Document], size: int, max_documents: int = 0, max_words: int = 0, progress: Progress = QUIET
) -> Iterator[Chunk]:
    """Yield the chunks of documents, in order, of at most `size` sentences.

    It stops after `max_documents` that gave a chunk, or with the document that reaches `max_words` words (0: no limit).
    """
    number = words = 0
    with progress.bar("reading documents") as bar:
        for document in documents:
            chunks = list(cut_chunks(number, document.sentences, size))
            yield from chunks
            number += bool(chunks)
            bar.update(number)
            if max_words and chunks:
                words += sum(word_count(sentence) for sentence in document.sentences)
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
    """Memory-mapped chunks, with their contexts.

    Sentences and contexts are also numbered, in the order of the chunks: the numbers of chunk i begin at
    `first_sentence[i]` and `first_context[i]`.

    Attributes:
        documents: Document of each chunk, int32 (chunks,).
        lengths: Number of sentences of each chunk, int64 (chunks,).
        first_sentence, first_context: First number of each chunk, int64 (chunks + 1,); the last entry is the total
            number.

    Args:
        path: Path to the output of `write_chunks`.
        left, right: Maximum number of sentences of a left and of a right context.

    Raises:
        ContextError: If the file does not exist, or does not contain chunks.
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
            raise ContextError(unread(path, error, "rebuild the index")) from None
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
            The sentence in the gap, int64 [C], and the sentences before it (farthest first) and after it (nearest
            first), int64 [C, left + right]; -1 if the chunk has no such sentence.
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
        """Return the sentences of each context, given by index, starting with the sentence in its gap."""
        return self._texts_at(np.column_stack(self.places(contexts)))

    def _texts_at(self, rows: np.ndarray) -> list[list[str]]:
        """Return the sentences of each row (C, any) of indices, of which -1 is none."""
        inside = rows >= 0
        texts = iter(self._flat.take(rows[inside]).to_pylist())
        return [list(islice(texts, int(count))) for count in inside.sum(axis=1)]

    def side_texts(self, contexts: np.ndarray, most: int | None = None) -> tuple[list[str], list[str]]:
        """Return the texts to the left and to the right of each gap, with at most `most` sentences each."""
        _, places = self.places(contexts)
        first = 0 if most is None else max(0, self.left - most)
        lefts, rights = self._texts_at(places[:, first : self.left]), self._texts_at(places[:, self.left :][:, :most])
        return list(map(" ".join, lefts)), list(map(" ".join, rights))


def hashing(bits: int) -> HashingVectorizer:
    """Return the vectoriser of texts: counts of lower-cased words and bigrams, hashed to 2 ** bits columns."""
    from sklearn.feature_extraction.text import HashingVectorizer

    # (?u)\b\w+\b and not scikit-learn's default, which drops words of one letter.
    return HashingVectorizer(
        ngram_range=(1, 2),
        n_features=1 << bits,
        alternate_sign=False,
        norm=None,
        token_pattern=r"(?u)\b\w+\b",
        dtype=np.float32,
    )


def build_retrieval(folder: Path, texts: Iterable[str], bits: int) -> None:
    """Index texts, the i-th of which is chunk i, and save the index in a folder."""
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import TfidfTransformer

    vectorizer, rest = hashing(bits), iter(texts)
    parts = [vectorizer.transform(batch) for batch in iter(lambda: list(islice(rest, _TEXTS_AT_ONCE)), [])]
    counts = sp.vstack(parts, format="csr")
    if not counts.nnz:
        raise ContextError(f"{folder}: no chunk contains a word, so that searches find nothing: index other text")
    transformer = TfidfTransformer(sublinear_tf=True)
    rows = transformer.fit_transform(counts).T.tocsr()  # (terms, chunks)
    arrays = {
        "starts": rows.indptr,
        "chunks": rows.indices.astype(np.int32),
        "weights": rows.data.astype(np.float32),
        "idf": np.where(np.diff(rows.indptr) > 0, transformer.idf_, 0).astype(np.float32),  # 0: in no chunk
        "shape": np.array([counts.shape[0], bits]),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", arrays[name])


class Retrieval:
    """The index that `build_retrieval` saved in a folder, mapped from disk."""

    def __init__(self, folder: Path) -> None:
        import scipy.sparse as sp

        try:
            starts, chunks, weights, self._idf, shape = (
                np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS
            )
        except (OSError, ValueError) as error:
            raise ContextError(unread(f"{folder}: the index of chunks", error, "rebuild it")) from None
        n_chunks, bits = (int(number) for number in shape)
        self._rows = sp.csr_matrix((weights, chunks, starts), shape=(1 << bits, n_chunks))
        self._vectorizer = hashing(bits)

    def scores(self, sentence: str) -> np.ndarray:
        """Return the cosine of a sentence with every chunk, float32 [chunks]; 0 if they share no term."""
        counts = self._vectorizer.transform([sentence])
        weights = (1 + np.log(counts.data)) * self._idf[counts.indices]
        cosines: np.ndarray = self._rows[counts.indices].T @ (weights / max(np.linalg.norm(weights), 1e-12))
        return cosines.astype(np.float32)

    def candidates(self, sentence: str, most: int) -> np.ndarray:
        """Return up to `most` chunks that share a term with a sentence, by falling cosine and then by number."""
        scores = self.scores(sentence)
        order = np.argsort(-scores, kind="stable")[:most]
        return order[scores[order] > 0]


def build_index(
    work: str | Path,
    corpus: Spec,
    options: IndexOptions | None = None,
    *,
    corpus_options: CorpusOptions | None = None,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
) -> Stage:
    """Build the index of a workspace, unless it is already built.

    The fingerprint of the index depends on the sentences and the options only: the same text in other files gives the
    same index. The corpus and the workspace can be copied or moved.

    Args:
        work: Path to the workspace.
        corpus: Paths to articles, a MediaWiki dump or plain text.
        options: Options of the chunks and the index.
        corpus_options: Options of reading the corpus.
        resume, overwrite: See `likewise.runs.job.open_job`; an unfinished index is rebuilt from the beginning.
        quiet: Whether to print nothing.

    Raises:
        CorpusError: If a file cannot be read with these options.
        ContextError: If no document has three sentences.
        JobError: If the existing index was built with different options or files.
    """
    options, reading, workspace = options or IndexOptions(), corpus_options or CorpusOptions(), Workspace(work)
    content = sha256(repr(reading).encode())
    for source in find_sources(corpus, reading):
        content.update(f"{source.path.stat().st_size} {checksum(source.path)}\n".encode())
    inputs = {"corpus": content.hexdigest()}
    with workspace.open("index", options, inputs=inputs, resume=resume, overwrite=overwrite) as job:
        if not job.finished:
            try:
                job.finish(_write_index(job.result, corpus, options, reading, Progress(quiet)))
            except BaseException:  # half an index is of no use to the next run
                shutil.rmtree(job.result)
                raise
    return workspace.require("index")


def open_store(index: Stage) -> ChunkStore:
    """Return the chunks of the stage `index`."""
    options = index.record["plan"]["options"]
    return ChunkStore(index.folder / _CHUNKS, options["left"], options["right"])


def _write_index(
    folder: Path, corpus: Spec, options: IndexOptions, reading: CorpusOptions, progress: Progress
) -> Record:
    """Write the files of an index; return the facts for its record."""
    path = folder / _CHUNKS
    limits = options.documents, options.words
    write_chunks(path, read_chunks(read_documents(corpus, reading), options.chunk_sentences, *limits, progress))
    store = ChunkStore(path, options.left, options.right)
    sources = [str(source.path) for source in find_sources(corpus, reading)]
    if not len(store):
        raise ContextError(
            f"{sources[0]}: no document has the three sentences that a context needs: give longer documents"
        )
    progress.tell(f"{counted(len(store), 'chunk')}; indexing their words")
    build_retrieval(
        folder / RETRIEVAL, (" ".join(store[chunk].sentences) for chunk in range(len(store))), options.hash_bits
    )
    return {
        "fingerprint": f"{checksum(path)} {options.left} {options.right} {options.hash_bits}",
        "sources": sources,
        "documents": int(store.documents[-1]) + 1,
        "chunks": len(store),
        "sentences": int(store.first_sentence[-1]),
        "contexts": store.n_contexts,
    }
