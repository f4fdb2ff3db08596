"""Any bytes as a corpus: every line is kept, counted as dropped, or the reason of an error that names it."""

import bz2
import gzip
import json
import lzma
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.corpus import CorpusError, CorpusOptions, CorpusReport, read_sentences
from likewise.errors import LikewiseError
from likewise.inference.text_pieces import lines_of

SETTINGS = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

FIELD = CorpusOptions(field="text")
odd = st.sampled_from(
    ["\0", "\ufeff", "\u200b", "e\u0301\u0327\u0334", "\u2028", "\x85", "\r", "\U0010ffff", " ", "\t"]
)
words = st.lists(st.one_of(odd, st.text(max_size=8), st.just("word")), max_size=8).map(" ".join)
raw_lines = st.one_of(words.map(lambda text: text.encode("utf-8", "surrogatepass")), st.binary(max_size=60))
files = st.lists(raw_lines, max_size=12).map(b"\n".join)


def read(path: Path, **options) -> tuple[list[str], CorpusReport]:
    report = CorpusReport()
    return list(read_sentences(str(path), CorpusOptions(**options), report)), report


def fault_of(read_it: Callable[[], None]) -> str:
    """The message of the error that a reader may raise, '' for none; another error than ours is a failure."""
    try:
        read_it()
    except LikewiseError as error:
        return str(error)
    return ""


@SETTINGS
@given(raw=files, encoding=st.sampled_from(["utf-8", "latin-1", "utf-16", "ascii"]))
def test_every_line_of_a_text_is_kept_or_counted(raw, encoding, tmp_path):
    path = tmp_path / "any.txt"
    path.write_bytes(raw)
    if fault := fault_of(lambda: read(path, encoding=encoding, split="line")):
        assert str(path) in fault
        return
    found, report = read(path, encoding=encoding, split="line")
    assert report.read == report.kept + sum(report.dropped.values())
    assert report.kept == len(found)
    assert all(len(sentence.split()) <= 100 for sentence in found)
    # Letters of Thai and of the scripts above it count as words without blanks between them.
    assert all(len(sentence.split()) >= 3 for sentence in found if max(sentence) < "\u0e00")
    for sentence in found:
        sentence.encode()  # no lone surrogate


broken = st.sampled_from(["{", "", '{"text": "\\ud800 a b c"}'])
rows = st.one_of(
    st.dictionaries(st.sampled_from(["text", "id"]), st.one_of(words, st.none(), st.integers()), max_size=2),
    st.lists(st.integers(), max_size=2),
    st.integers(),
    words,
)


@SETTINGS
@given(
    lines=st.lists(st.one_of(rows.map(json.dumps), st.sampled_from(["{", "", '{"text": "\\ud800 a b c"}'])), max_size=6)
)
def test_every_row_of_jsonl_is_kept_counted_or_named(lines, tmp_path):
    path = tmp_path / "any.jsonl"
    path.write_text("\n".join(lines))
    if fault := fault_of(lambda: read(path, field="text")):
        assert str(path) in fault
        return
    found, report = read(path, field="text")
    assert report.read == report.kept + sum(report.dropped.values())
    assert report.kept == len(found)


@SETTINGS
@given(raw=files, encoding=st.sampled_from(["utf-8", "latin-1"]))
def test_encode_gives_each_line_a_row_or_names_the_line(raw, encoding, tmp_path):
    path = tmp_path / "any.txt"
    path.write_bytes(raw)
    found: list[str] = []

    def read_it() -> None:
        found.extend(lines_of(str(path), CorpusOptions(encoding=encoding)))

    if fault := fault_of(read_it):
        assert re.search(r"any\.txt:\d+:", fault)
        return
    assert len(found) == raw.count(b"\n") + (raw != b"" and not raw.endswith(b"\n"))


PACKERS = [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]


@SETTINGS
@given(share=st.floats(0, 0.999), packer=st.sampled_from(PACKERS))
def test_an_archive_that_was_cut_is_named(share, packer, sentences, tmp_path):
    suffix, compress = packer
    packed = compress("\n".join(sentences[:50]).encode())
    path = tmp_path / f"text.txt{suffix}"
    path.write_bytes(packed[: int(share * len(packed))])
    with pytest.raises(CorpusError, match=r"text\.txt"):
        read(path, split="line")


def test_a_line_of_ten_megabytes_needs_no_more_than_its_pieces(tmp_path):
    path = tmp_path / "long.txt"
    with path.open("wb") as file:
        file.write(b"The old cat sees the dog.\n")
        for _ in range(10):
            file.write(b"word " * 200_000)
        file.write(b"\nThe dog sees the cat.\n")
    tracemalloc.start()
    found, report = read(path, split="line")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == ["The old cat sees the dog.", "The dog sees the cat."]
    assert report.dropped == {"too long": 1}
    assert peak < 1 << 26
