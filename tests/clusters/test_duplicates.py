"""`likewise.duplicates`: groups, what words tell apart, files, and vectors that are kept."""

import csv
import gzip
import json

import numpy as np
import pytest

import likewise
from likewise.clusters.texts import read_units
from likewise.corpus import CorpusOptions
from likewise.corpus.given import given_texts
from likewise.runs.orderly_stop import Stopped
from likewise.runs.progress import Progress

TEXTS = [
    "The old cat sees the dog near the river",
    "The quiet doctor builds the bridge in the market",
    "the old cat  sees the dog near the river",  # another case: the tiny model reads lower case
    "The old cat sees the dog near the river",  # word for word
    "The old cat does not see the dog near the river",
    "The farmer likes the 20 letters in the train",
    "The farmer likes the 30 letters in the train",
]


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


def test_a_group_has_the_first_text_and_those_that_repeat_it(lines, saved_model, tmp_path):
    out, kept = tmp_path / "groups.jsonl", tmp_path / "kept.txt"
    found = likewise.duplicates(lines, model=saved_model, out=out, keep_one=kept, threshold=0.99, quiet=True)
    assert found.groups == ((0, 2, 3),)
    assert (found.texts, found.exact, found.near, found.kept) == (7, 1, 1, 5)
    (group,) = map(json.loads, out.read_text().splitlines())
    assert group["kept"] == {"text": TEXTS[0], "file": str(lines), "line": 1}
    assert [(one["line"], one["cosine"]) for one in group["duplicates"]] == [(3, pytest.approx(1)), (4, 1.0)]
    assert kept.read_text().splitlines() == [TEXTS[0], TEXTS[1], *TEXTS[4:]]
    assert found.above[0].text == "the old cat sees the dog near the river"


def test_words_tell_apart_what_vectors_do_not(lines, saved_model):
    found = likewise.duplicates(lines, model=saved_model, threshold=0.5, words=0.01, quiet=True)
    assert found.reasons["negation"] >= 1
    assert found.reasons["numbers"] >= 1
    left_out = {one for _, *others in found.groups for one in others}
    assert not left_out & {4, 5, 6}
    blind = likewise.duplicates(lines, model=saved_model, threshold=0.5, words=0, quiet=True)
    assert {4, 6} <= {one for _, *others in blind.groups for one in others}
    assert not blind.apart


def test_texts_of_python_are_the_lines_of_a_file(lines, saved_model):
    by_file = likewise.duplicates(lines, model=saved_model, threshold=0.9, quiet=True)
    for given in (TEXTS, tuple(TEXTS), iter(TEXTS), np.array(TEXTS)):
        assert likewise.duplicates(given, model=saved_model, threshold=0.9, quiet=True) == by_file


def test_rows_are_kept_whole(saved_model, tmp_path):
    rows = [{"id": i, "body": text} for i, text in enumerate(TEXTS)]
    source = tmp_path / "rows.jsonl.gz"
    with gzip.open(source, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    options = {"model": saved_model, "threshold": 0.99, "corpus_options": CorpusOptions(field="body"), "quiet": True}
    likewise.duplicates(source, keep_one=tmp_path / "kept.jsonl", **options)
    kept = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    assert kept == [rows[i] for i in (0, 1, 4, 5, 6)]
    likewise.duplicates(source, keep_one=tmp_path / "kept.csv", **options)
    with (tmp_path / "kept.csv").open(newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ["0", "1", "4", "5", "6"]


def test_vectors_are_kept_for_another_threshold_and_another_file(lines, saved_model, tmp_path, monkeypatch, capsys):
    likewise.duplicates(lines, model=saved_model, threshold=0.9, quiet=True)
    monkeypatch.setattr("likewise.inference.files.encode_file", None)
    likewise.duplicates(lines, model=saved_model, threshold=0.8)
    assert "the vectors are kept from before" in capsys.readouterr().err
    copy = tmp_path / "copy.txt"
    copy.write_text(lines.read_text())
    likewise.duplicates(copy, model=saved_model, threshold=0.8, quiet=True)


def test_a_stop_while_texts_are_encoded_loses_nothing(corpus_file, saved_model, monkeypatch):
    from likewise.inference import files

    monkeypatch.setattr(files, "WINDOW", 100)
    whole = likewise.duplicates(corpus_file, model=saved_model, threshold=0.99, quiet=True)
    likewise.runs.cache.clear_cache("vectors")
    encoded = []
    before = files._with_known

    def counted(work, lines, *rest):
        encoded.append(len(lines))
        if len(encoded) == 2:
            raise Stopped
        return before(work, lines, *rest)

    monkeypatch.setattr(files, "_with_known", counted)
    with pytest.raises(Stopped):
        likewise.duplicates(corpus_file, model=saved_model, threshold=0.99, quiet=True)
    assert likewise.duplicates(corpus_file, model=saved_model, threshold=0.99, quiet=True) == whole
    assert sum(encoded) == 500  # of 400 texts, the window that was stopped twice


def test_a_unit_is_a_line_a_row_or_a_paragraph(tmp_path):
    prose = "One sentence is here. Another one follows it, and it goes on for a while.\n" * 3
    (tmp_path / "prose.md").write_text(f"# Title\n\n{prose}\n{prose}")
    units = list(read_units(given_texts(tmp_path / "prose.md"), Progress(quiet=True)))
    assert len(units) == 2
    assert units[0].text == units[1].text == " ".join(prose.split())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"threshold": 1.5}, "threshold is 1.5: give a cosine"),
        ({"words": 2}, "words is 2: give a share"),
        ({"out": "no/such/groups.jsonl"}, "there is no folder no/such"),
    ],
)
def test_an_option_out_of_range_is_told_before_anything_is_read(options, told, saved_model):
    with pytest.raises(likewise.LikewiseError, match=told):
        likewise.duplicates("no-such-file.txt", model=saved_model, **options)


def test_too_few_texts_and_what_is_no_text_are_errors(saved_model, tmp_path):
    (tmp_path / "one.txt").write_text("only one line is here\n")
    with pytest.raises(likewise.LikewiseError, match="1 text, and 2 or more are needed"):
        likewise.duplicates(tmp_path / "one.txt", model=saved_model, quiet=True)
    with pytest.raises(likewise.LikewiseError, match=r"none.txt: no such file"):
        likewise.duplicates(["none.txt", "nor.txt"], model=saved_model, quiet=True)
    with pytest.raises(likewise.LikewiseError, match=r"texts\[1\] is of type int, not a text"):
        likewise.duplicates(["the cat", 3], model=saved_model, quiet=True)


def test_the_cosine_of_pairs_drawn_at_random_is_that_of_all_pairs():
    from likewise.clusters.duplicates import _at_random

    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(200, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors @ vectors.T)[~np.eye(200, dtype=bool)]
    assert _at_random(vectors) == pytest.approx(np.quantile(cosines, 0.99), abs=0.02)
    assert _at_random(vectors[:1]) == 0


def test_of_a_folder_what_cannot_be_read_is_left_out_and_told(saved_model, tmp_path, capsys):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("\n".join(TEXTS) + "\n")
    (folder / "b.txt").write_bytes(b"\x00\x01\x02 binary")
    (folder / "c.py").write_text("import this\n")
    kept = tmp_path / "kept.txt"
    found = likewise.duplicates(folder, model=saved_model, keep_one=kept, threshold=0.99)
    assert found.groups == ((0, 2, 3),)
    assert len(kept.read_text().splitlines()) == found.kept
    told = capsys.readouterr().err
    assert "b.txt" in told
    assert "1 .py" in told


@pytest.mark.parametrize("option", ["out", "keep_one"])
def test_a_file_that_is_read_is_not_written_over(option, saved_model, sentences, tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("\n".join(sentences[:20]) + "\n")
    before = path.read_bytes()
    with pytest.raises(likewise.LikewiseError, match=r"own.txt is one of the files that were read"):
        likewise.duplicates(tmp_path, model=saved_model, quiet=True, **{option: tmp_path / "." / "own.txt"})
    assert path.read_bytes() == before
