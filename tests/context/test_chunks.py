"""Chunks and contexts, against loops over the documents."""

import numpy as np
import pytest

from likewise.context.index import Chunk, ChunkStore, cut_chunks, read_chunks, write_chunks
from likewise.context.workspace import ContextError
from likewise.corpus.documents import Document, Section
from likewise.runs.whole_files import checksum


def document(n: int, name: str = "d") -> Document:
    return Document(name, name, (Section("", tuple(f"{name} sentence {i} ." for i in range(n))),))


@pytest.mark.parametrize("n", range(3, 40))
@pytest.mark.parametrize("size", [5, 8])
def test_chunks_hold_the_document_in_order_in_near_equal_parts(n, size):
    sentences = tuple(map(str, range(n)))
    chunks = [chunk.sentences for chunk in cut_chunks(4, sentences, size)]
    assert sum(chunks, ()) == sentences
    lengths = [len(chunk) for chunk in chunks]
    assert max(lengths) <= size
    assert max(lengths) - min(lengths) <= 1
    assert min(lengths) >= 3


def test_a_document_without_a_context_gives_no_chunk_and_takes_no_number():
    chunks = list(read_chunks([document(2, "a"), document(3, "b"), document(1, "c"), document(4, "d")], 5))
    assert [(chunk.document, chunk.sentences[0][0]) for chunk in chunks] == [(0, "b"), (1, "d")]


def test_limits():
    documents = [document(4, name) for name in "abcde"]
    assert [chunk.document for chunk in read_chunks(documents, 5, max_documents=2)] == [0, 1]
    # 4 sentences of 4 words a document: 17 words are reached with the second.
    assert [chunk.document for chunk in read_chunks(documents, 5, max_words=17)] == [0, 1]
    assert [chunk.document for chunk in read_chunks(documents, 5, max_words=16)] == [0]


@pytest.fixture
def chunks():
    rng = np.random.default_rng(0)
    return [Chunk(i // 3, tuple(f"s{i}.{j}" for j in range(rng.integers(3, 8)))) for i in range(2500)]


@pytest.fixture
def store(chunks, tmp_path):
    write_chunks(tmp_path / "chunks.arrow", chunks)
    return ChunkStore(tmp_path / "chunks.arrow", left=2, right=3)


def test_what_is_written_is_read(store, chunks):
    assert len(store) == 2500
    assert [store[i] for i in (0, 999, 1000, 2499)] == [chunks[i] for i in (0, 999, 1000, 2499)]
    assert store.documents.tolist() == [chunk.document for chunk in chunks]
    flat = [sentence for chunk in chunks for sentence in chunk.sentences]
    assert store.texts() == flat
    assert int(store.first_sentence[-1]) == len(flat)


def test_contexts_are_those_of_a_loop(store, chunks):
    expected = [
        (
            i,
            [chunk.sentences[p], *chunk.sentences[max(0, p - 2) : p], *chunk.sentences[p + 1 : p + 4]],
            chunk.sentences[p - 1],
        )
        for i, chunk in enumerate(chunks)
        for p in range(1, len(chunk.sentences) - 1)
    ]
    assert store.n_contexts == len(expected)
    assert store.around(np.arange(store.n_contexts)) == [texts for _, texts, _ in expected]
    some = np.array([4000, 3, 3, 77])
    assert store.around(some) == [expected[i][1] for i in some]
    assert store.preceding(some) == [expected[i][2] for i in some]
    of = np.array([7, 2, 1999])
    assert store.contexts_of(of).tolist() == [n for i in of for n, found in enumerate(expected) if found[0] == i]


def test_places_are_the_sentences_of_the_context(store):
    flat = store.texts()
    numbers = np.arange(0, store.n_contexts, 5)
    centres, places = store.places(numbers)
    for number, centre, row in zip(numbers, centres, places, strict=True):
        chunk, place = (int(found[0]) for found in store.positions(np.array([number])))
        sentences = store[chunk].sentences
        assert [flat[i] for i in row[:2] if i >= 0] == list(sentences[max(0, place - 2) : place])
        assert [flat[i] for i in row[2:] if i >= 0] == list(sentences[place + 1 : place + 4])
        assert flat[centre] == sentences[place]
        assert row[1] >= 0, "the neighbours come next to the centre"
        assert row[2] >= 0


def test_the_texts_of_both_sides_are_those_of_a_loop(store, chunks):
    numbers = np.array([0, 5, 3000, store.n_contexts - 1])
    for most in (None, 1):
        lefts, rights = store.side_texts(numbers, most)
        for number, left, right in zip(numbers, lefts, rights, strict=True):
            (chunk,), (at,) = store.positions(np.array([number]))
            sentences = chunks[chunk].sentences
            assert left == " ".join(sentences[max(0, at - (most or 2)) : at])
            assert right == " ".join(sentences[at + 1 : at + 1 + (most or 3)])


def test_equal_chunks_make_equal_files_and_a_cut_elsewhere_another(tmp_path):
    path = tmp_path / "x.arrow"

    def written(*chunks):
        write_chunks(path, chunks)
        return checksum(path)

    one = written(Chunk(0, ("a", "b", "c", "d")))
    assert written(Chunk(0, ("a", "b", "c", "d"))) == one
    assert written(Chunk(0, ("a", "b")), Chunk(0, ("c", "d"))) != one
    assert written(Chunk(1, ("a", "b", "c", "d"))) != one


def test_a_damaged_file_is_named(tmp_path, says):
    (tmp_path / "chunks.arrow").write_bytes(b"nothing")
    with says(ContextError):
        ChunkStore(tmp_path / "chunks.arrow", 1, 1)
