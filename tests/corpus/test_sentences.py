"""From files to sentences: each way of dropping one, each format, and memory."""

import gzip
import json
import re
import textwrap
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from likewise.corpus import CorpusError, CorpusOptions, CorpusReport, read_sentences

PROSE = (
    "The dam of earth and timber above the old mill gave way on Monday. Mr. Hale had warned the council "
    "of it twice! Nobody listened to him.",
    "The lower fields lay under a metre of brown water for three days. Who would pay for the bridge?",
)
PROSE_SENTENCES = [
    "The dam of earth and timber above the old mill gave way on Monday.",
    "Mr. Hale had warned the council of it twice!",
    "Nobody listened to him.",
    "The lower fields lay under a metre of brown water for three days.",
    "Who would pay for the bridge?",
]


def read(spec, **options) -> tuple[list[str], CorpusReport]:
    report = CorpusReport()
    sentences = list(read_sentences(spec, CorpusOptions(**options), report))
    assert report.read == report.kept + sum(report.dropped.values())
    assert report.kept == len(sentences)
    return sentences, report


def test_every_reason_with_its_lines(write):
    lines = [
        b"Three words here",  # 1
        b"",  # 2
        b"two words",  # 3
        b"caf\xe9 is latin here",  # 4
        b"  -- ... --  ",  # 5
        b"w " * 9,  # 6
        b"one",  # 7
        b"  Spaces\tand\xc2\xa0tabs   go ",  # 8
        b"no line end here",  # 9
    ]
    path = write("a.txt", b"\n".join(lines))
    sentences, report = read(path, max_words=8)
    assert sentences == ["Three words here", "café is latin here", "Spaces and tabs go", "no line end here"]
    assert report.read == 9
    assert [note.partition(" ")[0] for note in report.notes] == [f"{path}:4:"]
    assert report.examples == {
        "empty": [f"{path}:2", f"{path}:5"],
        "too short": [f"{path}:3", f"{path}:7"],
        "too long": [f"{path}:6"],
    }
    assert report.files == {str(path): "line"}


def test_windows_line_ends_and_invisible_signs(write):
    path = write("a.txt", "\ufeffOne two\u00ad three.\r\nFour five\u200b six.\r\n")
    assert read(path)[0] == ["One two three.", "Four five six."]


def test_line_longer_than_what_is_held(write):
    path = write("a.txt", "One two three.\n" + "long " * 500_000 + "\nFour five six.\n")
    sentences, report = read(path)
    assert sentences == ["One two three.", "Four five six."]
    assert report.examples == {"too long": [f"{path}:2"]}


@pytest.mark.parametrize("width", [40, 72, 10_000])
def test_prose_of_any_layout(write, width):
    blank = "\n\n" if width < 1000 else "\n"
    path = write("a.txt", blank.join(textwrap.fill(text, width) for text in PROSE) + "\n")
    sentences, report = read(path)
    assert sentences == PROSE_SENTENCES
    assert report.files == {str(path): "prose"}


def test_line_numbers_of_wrapped_prose(write):
    path = write("a.txt", "The dam of earth that stood\nhere gave way. Oh\nno! The lower\nfields are wet.\n")
    sentences, report = read(path, split="prose")
    assert sentences == ["The dam of earth that stood here gave way.", "The lower fields are wet."]
    assert report.examples == {"too short": [f"{path}:2"]}


def test_what_a_wiki_would_take_for_its_marks_stays_in_prose(write):
    path = write("a.txt", f"== The flood ==\n{PROSE[0]}\n| a || b |\n{PROSE[1]}\n")
    sentences, report = read(path)
    assert sentences == ["== The flood ==", *PROSE_SENTENCES[:3], "| a || b |", *PROSE_SENTENCES[3:]]
    assert report.dropped == {}, "a plain text is no wiki"


def test_split_can_be_said(write):
    path = write("a.txt", "\n".join(PROSE))
    assert read(path, split="line")[0] == list(PROSE)
    assert read(path, split="prose")[0] == PROSE_SENTENCES


def test_colours_of_a_terminal_are_no_text(write):
    path = write("a.log", "\x1b[1;31mERROR\x1b(B\x1b[m the \x1b]8;;http://a\x07pump\x1b]8;;\x1b\\ failed\x1b[K\n")
    assert read(path)[0] == ["ERROR the pump failed"]


def test_latin_1(write, says):
    lines = ["Où est le café ?", "Là-bas, près de la forêt.", "La fenêtre est fermée."]
    path = write("a.txt", "\n".join(lines).encode("latin-1"))
    with says(CorpusError):
        read(path, encoding="utf-8")
    assert read(path, encoding="latin-1")[0] == lines
    assert read(write("b.txt", b"It is \x935 \x80\x94."), encoding="latin-1")[0] == ["It is “5 €”."]
    found, report = read(path)
    assert found == lines
    assert len(report.notes) == 1
    assert "cp1252" in report.notes[0]


def test_mostly_undecodable_is_refused_before_the_end(write, says):
    path = write("a.txt", b"fine words here\n" * 400 + b"caf\xe9 is closed\n" * 50_000)
    drawn = []
    with says(CorpusError):
        drawn.extend(read_sentences(path, CorpusOptions(encoding="utf-8")))
    with says(CorpusError):
        list(read_sentences(path, CorpusOptions(split="prose", encoding="utf-8")))
    assert len(list(read_sentences(path))) == 50_400, "the sign is known from the first odd line on"


def test_utf_16(write):
    path = write("a.txt", "One two three.\nVier fünf sechs.\n".encode("utf-16"))
    assert read(path, encoding="utf-16")[0] == ["One two three.", "Vier fünf sechs."]


def test_jsonl_is_prose(write):
    rows = [{"id": 1, "text": f"{PROSE[0]}\n\n{PROSE[1]}"}, {"text": None}, {"text": "Two words"}]
    content = "\n".join(json.dumps(row) for row in rows)
    path = write("a.jsonl.gz", gzip.compress(content.encode()))
    sentences, report = read(path, field="text")
    assert sentences == PROSE_SENTENCES
    assert report.examples == {"empty": [f"{path}:2"], "too short": [f"{path}:3"]}


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ('{"txt": "x", "id": 2}', r"a\.jsonl:2: no field 'text' in this row; it has: txt, id.*--field"),
        ('{"text": 5}', r"a\.jsonl:2: field 'text' is a number, not a string"),
        ('{"text": "x"', r"a\.jsonl:2: not a JSON object \(Expecting"),
        ("[1]", r"a\.jsonl:2: not a JSON object \(it is a list\)"),
    ],
)
def test_bad_row(write, second, words, says):
    path = write("a.jsonl", '{"text": "One two three."}\n' + second + '\n{"text": "Four five six."}\n')
    sentences, report = read(path, field="text")
    assert sentences == ["One two three.", "Four five six."]
    assert report.examples == {"bad row": [f"{path}:2"]}
    assert re.search(words, report.notes[0])
    with says(CorpusError):
        read(write("a.jsonl", second), field="text")


def test_nothing_left(write, says):
    path = write("a.txt", "one\ntwo\n")
    with says(CorpusError):
        read(path)
    with says(CorpusError):
        read(write("empty.txt", ""))


def test_articles(write):
    article = {
        "id": "7",
        "title": "Dams",
        "sections": [
            {"heading": "", "paragraphs": ["A dam () holds '''water''' . It has parts as follows:"]},
            {"heading": "Uses", "paragraphs": [PROSE[0], ' style="x" | Keepers']},
        ],
    }
    path = write("a.jsonl", json.dumps(article))
    sentences, report = read(path)
    assert sentences == ["A dam holds water.", *PROSE_SENTENCES[:3]]
    assert report.dropped == {"markup": 2}


def test_real_articles(shared_data: Path):
    path = shared_data / "wikipedia" / "articles.jsonl.gz"
    first = list(islice(read_sentences(path), 500))
    assert first[0].startswith("Jarred Shaw (born September 28, 1990) is an American professional basketball")
    assert not any("()" in text or "  " in text for text in first)


def _peak(path: Path, **options) -> int:
    """Most bytes held at once while a corpus is read."""
    tracemalloc.start()
    try:
        for _ in read_sentences(path, CorpusOptions(**options)):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("split", "few", "many"), [("line", 10_000, 40_000), ("prose", 3000, 12_000)])
def test_memory_does_not_grow_with_the_file(write, split, few, many):
    small, big = (
        write(f"{n}.txt", "".join(f"Sentence {i} stands in a file that only grows.\n" for i in range(n)))
        for n in (few, many)
    )
    next(read_sentences(small, CorpusOptions(split=split)))  # what is loaded once is not counted
    assert _peak(big, split=split) < _peak(small, split=split) + 100_000
