"""Compressed files, long lines and damage."""

import bz2
import gzip
import lzma
import zlib

import pytest
import zstandard

from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.files import STANDARD_INPUT, numbered_lines, read_head

TEXT = "".join(f"Line {i} says {i * i} – naïve.\n" for i in range(3000)).encode()
PACK = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstandard.compress, "xz": lzma.compress}


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("named", [True, False])
def test_round_trip(write, suffix, named):
    path = write(f"a.txt.{suffix}" if named else "a", PACK[suffix](TEXT))
    lines = list(numbered_lines(path))
    assert b"".join(raw for _, raw in lines) == TEXT
    assert [number for number, _ in lines] == list(range(1, 3001))


def test_a_text_that_begins_like_an_archive_is_text(write):
    text = b"BZh9 is the name of a street.\nNo archive.\n"
    assert [raw for _, raw in numbered_lines(write("a.txt", text))] == text.splitlines(keepends=True)


@pytest.mark.parametrize("suffix", PACK)
def test_an_empty_archive_is_an_empty_text(write, suffix):
    assert list(numbered_lines(write("a", PACK[suffix](b"")))) == []


@pytest.mark.parametrize("suffix", PACK)
def test_several_members_in_one_file(write, suffix):
    path = write(f"a.{suffix}", PACK[suffix](b"one\n") + PACK[suffix](b"two\n"))
    assert list(numbered_lines(path)) == [(1, b"one\n"), (2, b"two\n")]


@pytest.mark.parametrize("suffix", PACK)
def test_cut_short(write, suffix, says):
    packed = PACK[suffix](TEXT)
    path = write(f"a.txt.{suffix}", packed[: len(packed) // 2])
    with says(CorpusError, hidden=r":\d+:"):
        list(numbered_lines(path))


def test_cut_gzip_names_the_line_where_it_ends(write, says):
    packed = gzip.compress(TEXT)[:-4000]
    whole_lines = zlib.decompressobj(wbits=31).decompress(packed).count(b"\n")  # what zlib itself can give
    assert 0 < whole_lines < 3000
    path = write("a.txt.gz", packed)
    with says(CorpusError, hidden=f":{whole_lines + 1}:"):
        list(numbered_lines(path))


def test_misnamed_gzip(write, says):
    with says(CorpusError):
        list(numbered_lines(write("a.txt.gz", "plain text\n")))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_wide_encodings_come_as_utf8(write, encoding):
    path = write("a.txt", TEXT.decode().encode(encoding))
    assert b"".join(raw for _, raw in numbered_lines(path, CorpusOptions(encoding=encoding))) == TEXT


@pytest.mark.parametrize("encoding", ["auto", "latin-1"])
def test_byte_order_mark_goes(write, encoding):
    path = write("a.txt", b"\xef\xbb\xbfone\n")
    assert list(numbered_lines(path, CorpusOptions(encoding=encoding))) == [(1, b"one\n")]


def test_long_line_comes_in_pieces_cut_at_blanks(write):
    content = b"word " * 100 + b"\nnext\n"
    pieces = list(numbered_lines(write("a.txt", content), limit=64))
    assert b"".join(raw for _, raw in pieces) == content
    assert all(len(raw) <= 128 for _, raw in pieces)
    assert {number for number, _ in pieces} == {1, 2}
    assert all(raw.endswith((b" ", b"\n")) for _, raw in pieces)


def test_pieces_without_blanks_divide_no_character(write):
    text = "語" * 200
    pieces = list(numbered_lines(write("a.txt", text), limit=64))
    assert len(pieces) > 5
    assert "".join(raw.decode() for _, raw in pieces) == text


def test_ticks_reach_the_size_on_disk(write):
    path = write("a.txt", b"x\n" * 50_000)
    seen: list[int] = []
    list(numbered_lines(path, tick=seen.append))
    assert seen == sorted(seen)
    assert len(seen) == 12
    assert 0 < seen[-1] <= path.stat().st_size


def test_head_of_a_damaged_file_is_what_can_be_read(write):
    packed = gzip.compress(b"short\n" + TEXT)[:2000]
    assert read_head(write("a.gz", packed)).startswith(b"short\n")


@pytest.mark.parametrize("suffix", PACK)
def test_a_file_that_expands_beyond_measure_is_refused(write, suffix, says, monkeypatch):
    monkeypatch.setattr("likewise.corpus.files.FREE_EXPANSION", 1 << 22)  # 64 MiB take ten seconds
    path = write(f"bomb.txt.{suffix}", PACK[suffix](bytes(1 << 20) * 5))
    assert path.stat().st_size < (5 << 20) / 100
    with says(CorpusError):
        list(numbered_lines(path))
    size = sum(len(raw) for _, raw in numbered_lines(path, CorpusOptions(max_expansion=10**9)))
    assert size == 5 << 20


def test_missing_file(tmp_path, says):
    with says(CorpusError):
        list(numbered_lines(tmp_path / "nowhere.txt"))


def test_a_closed_standard_input_is_told(monkeypatch, says):
    monkeypatch.setattr("sys.stdin", None)
    with says(CorpusError):
        read_head(STANDARD_INPUT)
