import json

import numpy as np
import pytest

from likewise.evaluation.task import DataError, TaskMissing
from likewise.evaluation.tasks.negation import FILE, SemAntoNegTask, accuracy

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
    assert accuracy(vectors, labels) == right / 100
    assert accuracy(np.ones((8, 3), dtype=np.float32), np.array([2, 0])) == 0


def test_reads_rows_in_or_beside_the_data_folder(tmp_path):
    task = SemAntoNegTask(size=2)
    write(tmp_path, json.dumps(ROW), json.dumps(ROW))
    (tmp_path / "senteval").mkdir()
    for folder in (tmp_path, tmp_path / "senteval"):
        prepared = task.prepare(folder)
        assert prepared.sentences == 2 * [ROW["input"], *ROW["sentences"]]
    vectors = np.array([[1, 0], [0, 1], [1, 1], [1, 0.1]] * 2, dtype=np.float32)
    result = prepared.score(vectors)
    assert (result.metric, result.score, result.n) == ("accuracy", 100.0, 2)


def test_missing_and_malformed_are_told(tmp_path):
    with pytest.raises(TaskMissing, match="SemAntoNeg"):
        SemAntoNegTask().prepare(tmp_path)
    with pytest.raises(DataError, match=r"jsonl:2"):
        SemAntoNegTask(size=2).prepare(write(tmp_path, json.dumps(ROW), "{"))
    with pytest.raises(DataError, match=r"jsonl:1"):
        SemAntoNegTask(size=1).prepare(write(tmp_path, json.dumps(ROW | {"label": 3})))
    with pytest.raises(DataError, match="1 row, and"):
        SemAntoNegTask(size=2).prepare(write(tmp_path, json.dumps(ROW)))


def test_the_real_file(data_dir):
    prepared = SemAntoNegTask().prepare(data_dir / "senteval")
    assert len(prepared.sentences) == 4 * 3152
    assert prepared.score(np.random.default_rng(0).normal(size=(4 * 3152, 8))).score == pytest.approx(33, abs=3)
