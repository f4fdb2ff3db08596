"""The stage index."""

import os

import numpy as np

from likewise.context import ContextError, IndexOptions, Workspace, build_index
from likewise.context.index import RETRIEVAL, Retrieval, open_store
from likewise.corpus import CorpusError, read_documents
from likewise.runs.job import JobError

OPTIONS = IndexOptions(chunk_sentences=5, hash_bits=12)


def test_the_index_holds_the_documents(indexed, articles):
    stage = Workspace(indexed).require("index")
    store, retrieval = open_store(stage), Retrieval(stage.folder / RETRIEVAL)
    documents = [document.sentences for document in read_documents(str(articles)) if len(document.sentences) >= 3]
    found: list[list[str]] = [[] for _ in documents]
    for i in range(len(store)):
        found[store[i].document] += store[i].sentences
    assert [tuple(sentences) for sentences in found] == documents
    assert len(store) == stage.record["chunks"]
    assert stage.record["documents"] == len(documents)
    assert stage.record["sentences"] == sum(map(len, documents))
    assert stage.record["contexts"] == store.n_contexts
    # A chunk is nearest to its own text.
    assert all(retrieval.candidates(" ".join(store[i].sentences), 1)[0] == i for i in range(0, len(store), 7))


def test_the_same_sentences_from_another_file_are_the_same_index(indexed, articles, tmp_path):
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(articles.read_bytes())
    first = Workspace(indexed).require("index")
    assert build_index(tmp_path / "work", str(copy), OPTIONS, quiet=True).fingerprint == first.fingerprint
    other = build_index(tmp_path / "other", str(copy), IndexOptions(chunk_sentences=6, hash_bits=12), quiet=True)
    assert other.fingerprint != first.fingerprint


def test_another_corpus_asks_before_it_replaces(articles, tmp_path, says):
    text = tmp_path / "a.txt"
    text.write_text("One sentence stands here. Another one comes after it. The third sentence is the last.\n")
    stage = build_index(tmp_path / "work", str(text), OPTIONS, quiet=True)
    assert np.array_equal(open_store(stage).lengths, [3])
    with says(JobError):
        build_index(tmp_path / "work", str(articles), OPTIONS, quiet=True)
    assert build_index(tmp_path / "work", str(articles), OPTIONS, overwrite=True, quiet=True).record["documents"] == 80


def test_a_moved_workspace_and_a_copied_corpus_go_on(articles, tmp_path, says):
    corpus = tmp_path / "given" / "articles.jsonl"
    corpus.parent.mkdir()
    corpus.write_bytes(articles.read_bytes())
    first = build_index(tmp_path / "work", str(corpus), OPTIONS, quiet=True)
    corpus.parent.rename(tmp_path / "elsewhere")
    (tmp_path / "work").rename(tmp_path / "moved")
    corpus = tmp_path / "elsewhere" / "articles.jsonl"
    os.utime(corpus, (1, 1))
    again = build_index(tmp_path / "moved", str(corpus), OPTIONS, quiet=True)
    assert again.record == first.record
    corpus.write_bytes(articles.read_bytes().replace(b"ship", b"boat"))  # of the same size
    with says(JobError):
        build_index(tmp_path / "moved", str(corpus), OPTIONS, quiet=True)


def test_limits(articles, tmp_path):
    limited = build_index(tmp_path / "work", str(articles), IndexOptions(documents=7), quiet=True)
    assert limited.record["documents"] == 7


def test_a_corpus_of_too_short_documents(tmp_path, says):
    (tmp_path / "a.txt").write_text("Only one sentence is in this file.\n")
    with says(ContextError):
        build_index(tmp_path / "work", str(tmp_path / "a.txt"), OPTIONS, quiet=True)
    assert not (tmp_path / "work" / "index").exists(), "another corpus can take its place"


def test_a_missing_corpus(tmp_path, says):
    with says(CorpusError):
        build_index(tmp_path / "work", str(tmp_path / "none.txt"), OPTIONS, quiet=True)
    assert not (tmp_path / "work").exists()
