"""The stage `index` of a workspace: documents as chunks on disk, and the retrieval over them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from likewise.context.chunks import Chunk, ChunkStore, read_chunks, write_chunks
from likewise.context.options import IndexOptions
from likewise.context.retrieval import Retrieval, build_retrieval
from likewise.context.workspace import ContextError, Stage, Workspace
from likewise.corpus import CorpusOptions, read_documents
from likewise.corpus.sources import Spec, find_sources
from likewise.runs.job import Resume
from likewise.runs.parts import checksum
from likewise.runs.progress import Progress

_CHUNKS, _RETRIEVAL = "chunks.arrow", "retrieval"


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
    """Build the index of a workspace, or find it there.

    Its fingerprint is one of the sentences and the options: the same text in other files gives the same index.

    Args:
        work: the workspace's folder.
        corpus: articles, a MediaWiki dump or plain text.
        options: sizes.
        corpus_options: how the files are read.
        resume, overwrite: as in `likewise.runs.job.open_job`; an index that was not finished is begun anew.
        quiet: show nothing.

    Raises:
        CorpusError: a file cannot be read as asked.
        ContextError: no document has three sentences.
        JobError: other options or files made the index that is there.
    """
    options, reading, workspace = options or IndexOptions(), corpus_options or CorpusOptions(), Workspace(work)
    digest = sha256(repr(reading).encode())
    for source in find_sources(corpus, reading):
        stat = source.path.stat()
        digest.update(f"{source.path.resolve()} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    inputs = {"corpus": digest.hexdigest()}
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
    """Write the files of an index; returns the facts for its record."""
    path = folder / _CHUNKS
    chunks = read_chunks(read_documents(corpus, reading), options.chunk_sentences, options.documents, options.words)
    write_chunks(path, _counted(chunks, progress))
    store = ChunkStore(path, options.left, options.right)
    sources = [str(source.path) for source in find_sources(corpus, reading)]
    if not len(store):
        raise ContextError(f"{sources[0]}: no document has three sentences, so nothing has a context")
    progress.tell(f"{len(store):,} chunks; indexing their words")
    build_retrieval(
        folder / _RETRIEVAL, (" ".join(store[chunk].sentences) for chunk in range(len(store))), options.hash_bits
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


def open_retrieval(index: Stage) -> Retrieval:
    """Return the retrieval of the stage `index`."""
    return Retrieval(index.folder / _RETRIEVAL)


def _counted(chunks: Iterable[Chunk], progress: Progress) -> Iterator[Chunk]:
    with progress.bar("reading documents") as bar:
        for chunk in chunks:
            bar.update(chunk.document + 1)
            yield chunk
