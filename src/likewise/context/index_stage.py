"""The stage `index` of a workspace: documents as chunks on disk, and their retrieval by TF-IDF.

Words and bigrams are hashed, so no vocabulary is held and a corpus of any size is read once; weights and hashing are
scikit-learn's: (1 + ln tf) (1 + ln((1 + n) / (1 + df))), every chunk of length 1. The transpose is stored, a
row a word: a sentence of 20 words touches 40 rows and no others. While it is made, all counts are in memory: about 30
bytes a word of the corpus.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.context.chunks import Chunk, ChunkStore, read_chunks, write_chunks
from likewise.context.stage_options import IndexOptions
from likewise.context.workspace import ContextError, Stage, Workspace
from likewise.corpus import CorpusOptions, read_documents
from likewise.corpus.sources import Spec, find_sources
from likewise.errors import counted
from likewise.runs.job import Resume, read_record
from likewise.runs.parts import checksum
from likewise.runs.progress import Progress

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import HashingVectorizer

_CHUNKS, RETRIEVAL = "chunks.arrow", "retrieval"
_ARRAYS = ("starts", "chunks", "weights", "idf", "shape")
_TEXTS_AT_ONCE = 5_000


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
        raise ContextError(f"{folder}: no chunk holds a word, so that nothing can be found: index other text")
    transformer = TfidfTransformer(sublinear_tf=True)
    rows = transformer.fit_transform(counts).T.tocsr()  # (terms, chunks)
    found = {
        "starts": rows.indptr,
        "chunks": rows.indices.astype(np.int32),
        "weights": rows.data.astype(np.float32),
        "idf": np.where(np.diff(rows.indptr) > 0, transformer.idf_, 0).astype(np.float32),  # 0: in no chunk
        "shape": np.array([counts.shape[0], bits]),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", found[name])


class Retrieval:
    """The index that `build_retrieval` saved in a folder, mapped from disk."""

    def __init__(self, folder: Path) -> None:
        import scipy.sparse as sp

        try:
            starts, chunks, weights, self._idf, shape = (
                np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS
            )
        except (OSError, ValueError) as error:
            raise ContextError(f"{folder}: the index of chunks cannot be read ({error}): make it again") from None
        self._n_chunks, bits = (int(number) for number in shape)
        self._rows = sp.csr_matrix((weights, chunks, starts), shape=(1 << bits, self._n_chunks))
        self._vectorizer = hashing(bits)

    def __len__(self) -> int:
        return self._n_chunks

    def scores(self, sentence: str) -> np.ndarray:
        """Return the cosine of a sentence with every chunk, float32 [chunks]; 0 if they share no term."""
        counts = self._vectorizer.transform([sentence])
        weights = (1 + np.log(counts.data)) * self._idf[counts.indices]
        found: np.ndarray = self._rows[counts.indices].T @ (weights / max(np.linalg.norm(weights), 1e-12))
        return found.astype(np.float32)

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

    Its fingerprint is one of the sentences and the options: the same text in other files gives the same index. Corpus
    and workspace may be copied or moved: files are known by their content.

    Args:
        work: the workspace's folder.
        corpus: articles, a MediaWiki dump or plain text.
        options: sizes.
        corpus_options: how the files are read.
        resume, overwrite: as in `likewise.runs.job.open_job`; an unfinished index is built from the start.
        quiet: show nothing.

    Raises:
        CorpusError: a file cannot be read as asked.
        ContextError: no document has three sentences.
        JobError: other options or files made the index that is there.
    """
    options, reading, workspace = options or IndexOptions(), corpus_options or CorpusOptions(), Workspace(work)
    by_content, by_place = sha256(repr(reading).encode()), sha256(repr(reading).encode())
    for source in find_sources(corpus, reading):
        stat = source.path.stat()
        by_content.update(f"{stat.st_size} {checksum(source.path)}\n".encode())
        by_place.update(f"{source.path.resolve()} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    inputs = {"corpus": by_content.hexdigest()}
    # An index of an earlier release knows its corpus by place and time.
    earlier = {"corpus": by_place.hexdigest()}
    if read_record(workspace.path / "index").get("plan", {}).get("inputs") == earlier:
        inputs = earlier
    with workspace.open("index", options, inputs=inputs, resume=resume, overwrite=overwrite) as job:
        if not job.finished:
            try:
                job.finish(_write_index(job.result, corpus, options, reading, Progress(quiet)))
            except BaseException:  # half an index is of no use to the next run
                shutil.rmtree(job.result)
                raise
    return workspace.require("index")


def _write_index(
    folder: Path, corpus: Spec, options: IndexOptions, reading: CorpusOptions, progress: Progress
) -> dict[str, Any]:
    """Write the files of an index; return the facts for its record."""
    path = folder / _CHUNKS
    chunks = read_chunks(read_documents(corpus, reading), options.chunk_sentences, options.documents, options.words)
    write_chunks(path, _counted(chunks, progress))
    store = ChunkStore(path, options.left, options.right)
    sources = [str(source.path) for source in find_sources(corpus, reading)]
    if not len(store):
        raise ContextError(
            f"{sources[0]}: no document has three sentences, so that none has a context: give longer documents"
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


def open_store(index: Stage) -> ChunkStore:
    """Return the chunks of the stage `index`."""
    options = index.record["plan"]["options"]
    return ChunkStore(index.folder / _CHUNKS, options["left"], options["right"])


def _counted(chunks: Iterable[Chunk], progress: Progress) -> Iterator[Chunk]:
    with progress.bar("reading documents") as bar:
        for chunk in chunks:
            bar.update(chunk.document + 1)
            yield chunk
