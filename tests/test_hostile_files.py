"""One table of broken and odd files and of everything that reads text: `messages.txt` has what each reader returns."""

import gzip
import lzma
from collections.abc import Iterable
from pathlib import Path

import pytest

from likewise.corpus import CorpusOptions, CorpusReport, read_documents, read_sentences
from likewise.corpus.documents import read_triplets
from likewise.corpus.passages import read_passages
from likewise.corpus.sources import find_sources
from likewise.errors import LikewiseError
from likewise.evaluation.registry import resolve
from likewise.inference.text_pieces import lines_of
from likewise.searching.index.passages import Splitting
from likewise.training.objectives import LabelledRows, STSOptions, read_nli, read_sts

LINE = "The old cat sees the dog near the river.\n"
LATIN = "Das Café über dem Fluss ist für Gäste geöffnet.\n".encode("latin-1")
PAGE = f"<page>\n<title>A</title>\n<ns>0</ns>\n<id>1</id>\n<revision><text>{LINE * 9}</text></revision>\n</page>\n"
DUMP = f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">\n{PAGE}</mediawiki>\n'
LAUGHS = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10 if i else "ha"}">' for i in range(12))
ARTICLE = '{"id": "1", "title": "T", "sections": [{"head": "", "paragraphs": ["One two three."]}]}\n'

FILES: dict[str, tuple[str, str | bytes]] = {
    "no byte": ("a.txt", ""),
    "blanks": ("a.txt", " \n\t\n\u3000\n"),
    "a null byte": ("a.txt", LINE * 3 + "\0"),
    "no text": ("a.txt", bytes(range(128, 256)) + bytes(range(1, 32)) * 4),
    "a zip archive": ("a.zip", b"PK\x03\x04rest"),
    "Latin-1": ("a.txt", LATIN * 3),
    "one line in Latin-1": ("a.txt", LINE.encode() * 30 + LATIN),
    "half of a character": ("a.jsonl", '{"text": "The \\ud800 cat sees the dog."}\n'),
    "a cut archive": ("a.txt.gz", gzip.compress(LINE.encode() * 3, mtime=0)[:-12]),
    "a cut table in an archive": ("a.tsv.xz", lzma.compress(b"sentence1\tsentence2\tlabel\na\tb\tneutral\n")[:-9]),
    "a misnamed archive": ("a.txt.gz", LINE),
    "a cut Parquet file": ("a.parquet", b"PAR1 and no more"),
    "a web page in XML": ("a.xml", "<html></html>"),
    "a cut dump": ("a.xml", DUMP[:300]),
    "a dump that is no XML": ("a.xml", DUMP.replace("</title>", "")),
    "a dump without namespaces": ("a.xml", DUMP.replace("<ns>0</ns>", "")),
    "a dump without pages": ("a.xml", DUMP.replace(PAGE, "")),
    "entities without end": (
        "a.xml",
        f"<?xml version='1.0'?><!DOCTYPE mediawiki [{LAUGHS}]><mediawiki><page><text>&a11;</text></page></mediawiki>",
    ),
    "brackets without end": ("a.jsonl", "[" * 200_000),
    "a row that is a list": ("a.jsonl", "[1, 2]\n"),
    "a row that is cut": ("a.jsonl", f'{{"text": "{LINE.strip()}"}}\n{{"text": "The dog'),
    "a list that is cut": ("a.json", '[\n{"text": "The cat sees the dog."},\n{"text": "The dog'),
    "a text that is a number": ("a.jsonl", '{"text": 5}\n'),
    "a text that is a list": ("a.jsonl", '{"sentence1": ["a", "b"], "sentence2": "c", "label": 1}\n'),
    "rows without a text": ("a.jsonl", '{"id": 1}\n{"id": 2}\n'),
    "an article without headings": ("a.jsonl", ARTICLE),
    "an article without paragraphs": ("a.jsonl", '{"sections": [{"heading": "x"}]}\n'),
    "two columns of text": ("a.csv", "body,head\nOne two three.,Four five six.\n"),
    "an open quote": ("a.csv", 'text,label\nThe cat sees.,x\n"The dog,y\n'),
    "an open quote of a pair": ("a.csv", '1,a,b\n2,c,"d\n3,e,f\n'),
    "an open quote of a triplet": ("a.csv", 'Sentence1,Sentence2,Sentence3\na,b,c\n"d,e,f\n'),
    "a cell too many": (
        "a.csv",
        "sentence1,sentence2,label\nThe cat,The dog,neutral\nThe cat, again,The dog,neutral\n",
    ),
    "a cell too few": ("a.tsv", "sentence1\tsentence2\tlabel\na\tb\tneutral\nc\td\n"),
    "a header alone": ("a.tsv", "score\tsentence1\tsentence2\n"),
    "a header of triplets alone": ("a.csv", "Sentence1,Sentence2,Sentence3\n"),
    "columns of other names": ("a.tsv", "first\twhat\na\tb\n"),
    "an empty sentence": ("a.csv", "Sentence1,Sentence2,Sentence3\na,b,c\na,,c\n"),
    "a pair with an empty sentence": ("a.tsv", "1\ta\tb\n2\tc\t \n"),
    "a pair of two cells": ("a.tsv", "1\ta\tb\n2\tc\n"),
    "pairs of four cells": ("a.tsv", "1\ta\tb\t4.5\n2\tc\td\t1\n"),
    "a word as the first score": ("a.tsv", "high\tc\td\n"),
    "a score that is no number": ("a.tsv", "1\tThe cat sees.\tThe dog sees.\nnan\tc\td\n"),
    "scores that are all equal": ("a.tsv", "1\tThe cat sees.\tThe dog sees.\n1\tc\td\n"),
    "a PDF file that is cut": ("a.pdf", b"%PDF-1.7 ..."),
    "a Word file of 1997": ("a.doc", b"\xd0\xcf\x11\xe0..."),
}


def rated(path: str, report: CorpusReport) -> Iterable[str]:
    (task,) = resolve(f"pairs:{path}")[0]
    pairs = task.load()
    return map(" | ".join, zip(pairs.first, pairs.second, strict=True))


def labelled(rows: LabelledRows, report: CorpusReport) -> Iterable[str]:
    for note in rows.left_out.splitlines():
        report.note(note)
    return (
        " | ".join(f"{cell:.2g}" if isinstance(cell, float) else str(cell) for cell in row.values())
        for row in rows.dataset
    )


NEEDED = {"dump": "gensim", "PDF": "liteparse"}
"""Words in the names of files to the package that reads them."""

READERS = {
    "sources": lambda path, report: [one.kind for one in find_sources(path, CorpusOptions(), report=report)],
    "sentences": lambda path, report: read_sentences(path, CorpusOptions(), report),
    "passages": lambda path, report: [one.text for one in read_passages(path, report=report)],
    "index": lambda path, report: [one.text for one in Splitting(20, CorpusOptions(), {}).read(Path(path), report)],
    "index of a field": lambda path, report: [
        one.text for one in Splitting(20, CorpusOptions(field="text"), {}).read(Path(path), report)
    ],
    "documents": lambda path, report: [" ".join(one.sentences) for one in read_documents(path)],
    "lines": lambda path, report: lines_of(path, CorpusOptions(), tell=report.note),
    "lines of a field": lambda path, report: lines_of(path, CorpusOptions(field="text"), tell=report.note),
    "triplets": lambda path, report: [" | ".join(one) for one in read_triplets(path)],
    "pairs": rated,
    "entailments": lambda path, report: labelled(read_nli([Path(path)]), report),
    "ratings": lambda path, report: labelled(read_sts([Path(path)], None, STSOptions()), report),
}
FORMATS = r"(?<=give )text, JSONL, .*|(?<=ends in )\..*(?=: name)"
"""The lists of formats in messages, which grow with the packages that are installed."""


def outcome(read, path: str) -> str:
    """Return the first texts of a reader, the number of further ones, and its notes; or the message of its error."""
    report = CorpusReport()
    try:
        texts = list(read(path, report))
    except LikewiseError as error:
        return f"{type(error).__name__}: {error}"
    shown = "; ".join(ascii(text[:60]) for text in texts[:2])
    more = f", and {len(texts) - 2} more" if len(texts) > 2 else ""
    return "\n".join([f"reads {shown or 'nothing'}{more}", *report.messages])


def outcomes(path: Path) -> list[str]:
    """Return what the readers return for a file, each outcome after the names of its readers."""
    readers: dict[str, list[str]] = {}
    for name, read in READERS.items():
        readers.setdefault(outcome(read, str(path)), []).append(name)
    return [f"{', '.join(names)}: {text}" for text, names in readers.items()]


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_or_refused_with_its_line_and_a_cure(name, write, recorded):
    for word, package in NEEDED.items():
        if word in name:
            pytest.importorskip(package, reason=f"{package} is not installed")
    for text in outcomes(write(*FILES[name])):
        recorded(text, FORMATS)


@pytest.mark.parametrize("name", ["missing", "folder", "device"])
def test_what_is_no_file_is_refused(name, tmp_path, recorded):
    path = Path("/dev/zero") if name == "device" else tmp_path / name
    if name == "folder":
        path.mkdir()
    for text in outcomes(path):
        recorded(text, FORMATS)
