"""Prepared corpora: against plain Python, and their cache."""

import gzip
import hashlib
import os
import random
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import pytest

from likewise.corpus import CorpusError, CorpusOptions, prepare
from likewise.corpus import sentences as module
from likewise.runs.progress import Progress


@pytest.fixture
def cache(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "corpus"


def kept(cache: Path) -> list[Path]:
    return [path for path in cache.iterdir() if path.name != ".locks"]


@pytest.fixture
def made(monkeypatch) -> list[int]:
    """Grows by one each time a corpus is really read."""
    calls: list[int] = []
    make = module._make

    def counted(*given):
        calls.append(1)
        return make(*given)

    monkeypatch.setattr(module, "_make", counted)
    return calls


def test_deduplicates_across_files_as_a_set_does(write, cache, tmp_path):
    chance = random.Random(3)
    wanted: dict[str, None] = {}  # keeps the order of the first occurrence
    places: list[str] = []
    for name in ("a.txt", "b.txt", "c.txt"):
        lines = [f"This is sentence {chance.randrange(12_000)} here" for _ in range(8000)]
        path = write(name, "\n".join(lines))
        for number, line in enumerate(lines, 1):
            if line in wanted:
                places.append(f"{path}:{number}")
            wanted[line] = None
    corpus = prepare(str(tmp_path / "*.txt"))
    assert corpus.dataset["sentence"][:] == list(wanted)
    assert corpus.report.dropped == {"duplicate": 24_000 - len(wanted)}
    assert corpus.report.examples == {"duplicate": places[:5]}
    assert corpus.report.read == 24_000
    assert len(corpus) == corpus.report.kept == len(wanted)
    assert corpus.sha256 == hashlib.sha256("".join(f"{text}\n" for text in wanted).encode()).hexdigest()
    assert corpus.sources == tuple(str(tmp_path / name) for name in ("a.txt", "b.txt", "c.txt"))


def test_columns_are_mapped_from_disk(write, cache):
    corpus = prepare(write("a.txt", "One two  three\nFour five six seven\n"))
    assert corpus.dataset.to_dict() == {"sentence": ["One two three", "Four five six seven"], "words": [3, 4]}
    assert str(corpus.dataset.features["words"].dtype) == "int32"
    assert [Path(file["filename"]) for file in corpus.dataset.cache_files] == [corpus.path]
    assert corpus.path.is_relative_to(cache)


def test_duplicates_can_stay(write, cache):
    path = write("a.txt", "One two three\n" * 3)
    assert len(prepare(path, CorpusOptions(deduplicate=False))) == 3
    assert len(prepare(path)) == 1


def test_second_call_reads_the_cache(write, cache, made):
    path = write("a.txt", "One two three\nno\nOne two three\n")
    first = prepare(path)
    second = prepare(path)
    assert len(made) == 1
    assert second.report == first.report
    assert second.report.dropped == {"too short": 1, "duplicate": 1}
    assert (second.sha256, second.sources) == (first.sha256, first.sources)
    assert second.dataset.to_dict() == first.dataset.to_dict()


def test_what_makes_it_read_again(write, cache, made):
    path = write("a.txt", "One two three\nFour five\n")
    prepare(path)
    assert len(prepare(path, CorpusOptions(min_words=2))) == 2
    assert len(made) == 2
    stat = path.stat()
    path.write_text("Uno due tres\nFour five\n")  # as long as before
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert prepare(path).dataset["sentence"][:] == ["Uno due tres"]
    assert len(made) == 3
    prepare([path, write("b.txt", "Six seven eight")])
    assert len(made) == 4


@pytest.mark.parametrize("name", ["sentences.arrow", "corpus.json"])
@pytest.mark.parametrize("damage", ["remove", "cut"])
def test_damaged_cache_is_made_again(write, cache, made, name, damage):
    path = write("a.txt", "One two three\n")
    corpus = prepare(path)
    file = corpus.path.parent / name
    del corpus
    if damage == "remove":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:20])
    assert len(prepare(path)) == 1
    assert len(made) == 2


def test_a_failure_leaves_nothing_behind(write, cache, says):
    path = write("a.jsonl", '{"t": "One two three."}\n' * 9)
    with says(CorpusError):
        prepare(path, CorpusOptions(field="text"))
    assert kept(cache) == []


def test_an_archive_that_would_fill_the_disk_leaves_nothing_behind(write, cache, monkeypatch, says):
    monkeypatch.setattr("likewise.corpus.files.FREE_EXPANSION", 1 << 20)  # 64 MiB take half a minute
    path = write("a.txt.gz", gzip.compress(b"One two three four.\n" * 80_000, 9))
    with says(CorpusError):
        prepare(path)
    assert kept(cache) == []


def test_no_temporary_file_stays(write, cache):
    corpus = prepare(write("a.txt", "One two three\n"))
    names = [path.name for path in cache.rglob("*") if path.is_file()]  # one is a hash: not in a fixed order
    assert sorted(names) == sorted([".whole.json", corpus.path.parent.name, "corpus.json", "in-use", "sentences.arrow"])
    assert kept(cache) == [corpus.path.parent]


def test_too_few(write, cache, says):
    path = write("a.txt", "One two three\nno\n")
    with says(CorpusError):
        prepare(path, at_least=64)
    assert len(prepare(path)) == 1


def test_half_a_character_does_not_break_the_file(write, cache):
    """JSON can name half of a pair, which no UTF-8 file can hold."""
    rows = '{"t": "One \\ud83d two three."}\n{"t": "Four \\ud83d\\ude00 five six."}'
    corpus = prepare(write("a.jsonl", rows), CorpusOptions(field="t"))
    assert corpus.dataset["sentence"][:] == ["One two three.", "Four 😀 five six."]


def test_progress(write, cache):
    paths = [write(f"{name}.txt", "".join(f"Line {name} {i} here\n" for i in range(9000))) for name in "ab"]
    total = sum(path.stat().st_size for path in paths)
    seen: list[tuple[int, int]] = []

    class Seen(Progress):
        @contextmanager
        def bar(self, what, total=None, **how):
            with super().bar(what, total, **how) as bar:
                update = bar.update
                bar.update = lambda done: (update(done), seen.append((bar.done, bar.total)))
                yield bar

    prepare(paths, progress=Seen(quiet=True))
    assert [whole for _, whole in seen] == [total] * len(seen)
    assert seen == sorted(seen)
    assert seen[-1] == (total, total)
    assert len(seen) > 3


def test_memory_grows_by_fingerprints_alone(write, cache):
    paths = [write(f"{n}.txt", "".join(f"Sentence {i} of a corpus\n" for i in range(n))) for n in (20_000, 50_000)]
    prepare(write("first.txt", "One two three"))  # what is loaded once is not counted
    peaks = []
    for path in paths:
        tracemalloc.start()
        prepare(path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The fingerprints of 30,000 more sentences.
    assert peaks[1] < peaks[0] + 30_000 * 120
