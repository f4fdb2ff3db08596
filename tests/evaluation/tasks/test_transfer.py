import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from likewise.errors import LikewiseError
from likewise.evaluation import evaluate
from likewise.evaluation.registry import resolve
from likewise.evaluation.task import DataError, TaskMissing
from likewise.evaluation.tasks.transfer import SEVEN, TASKS, TransferResult

BY_NAME = {task.name: task for task in TASKS}
LINES = {
    "mr": lambda text, i, label: text,
    "sst2": lambda text, i, label: f"{text} \t{label}",
    "trec": lambda text, i, label: f"{('NUM:count', 'HUM:ind')[label]} {text}",
    "mrpc": lambda text, i, label: f"{label}\t{i}\t{i + 1}\t{text}\t{text if label else 'unlike it'}",
}
SIZE = 40


@pytest.fixture
def small(monkeypatch):
    """The tasks with 40 rows a file."""
    from likewise.evaluation import registry

    made = {
        task.name: replace(task, files=tuple(file._replace(size=SIZE) for file in task.files), strengths=(1.0, 8.0))
        for task in TASKS
    }
    for name, task in made.items():
        monkeypatch.setitem(registry.TASKS, name, task)
    return made


@pytest.fixture
def folder(tmp_path, sentences) -> Path:
    """Files in SentEval's layout: short sentences of one class, long ones of the other."""
    rng = random.Random(0)
    texts = ([s for s in sentences if len(s.split()) < 12], [s for s in sentences if len(s.split()) > 30])
    for task in TASKS:
        for file in task.files:
            line = LINES.get(task.name, LINES["mr"])
            whole = len(task.files) == 2 and file.part == "all"
            rows = []
            for i in range(SIZE):
                label = int(file is task.files[0]) if whole else i % 2
                rows.append(line(rng.choice(texts[label]), i, label))
            path = tmp_path / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(["a\theader"] * file.header + rows) + "\n", encoding="utf-8")
    return tmp_path


def test_all_seven_with_their_average(tiny_model, small, folder):
    report = evaluate(tiny_model, "transfer", data=folder)
    assert [result.name for result in report.results] == list(SEVEN)
    assert report.missing == ()
    assert report.averages["transfer"] == pytest.approx(np.mean([r.score for r in report.results]))
    assert {r.name: r.n for r in report.results} == {
        "mr": 80, "cr": 80, "subj": 80, "mpqa": 80, "sst2": 40, "trec": 40, "mrpc": 40
    }  # fmt: skip
    # A random encoder tells short sentences from long ones.
    assert all(report[name].score > 90 for name in ("mr", "sst2", "trec"))
    assert report["mrpc"].f1 is not None
    assert report["mr"].f1 is None
    assert "| MR" in report.table()
    again = evaluate(tiny_model, "cr,sst2,trec,mrpc", data=folder)  # each way in which a task is divided
    assert [r.to_dict() for r in again.results] == [report[r.name].to_dict() for r in again.results]


def test_beside_other_tasks_and_with_missing_files(tiny_model, small, folder):
    (folder / "CR/custrev.neg").unlink()
    report = evaluate(tiny_model, "transfer,sts-b-dev", data=folder)
    assert {task.name: task.reason for task in report.missing} == {
        "cr": "there is no file CR/custrev.neg in or next to the data folder",
        "sts-b-dev": "there is no file STS/STSBenchmark/sts-dev.csv in or next to the data folder",
    }
    assert report.averages == {"transfer": None}
    assert "Missing: CR" in report.table()


def test_a_broken_model_is_refused(tiny_model, small, folder, says):
    for parameter in tiny_model.parameters():
        parameter.data.fill_(float("nan"))
    with says(LikewiseError):
        evaluate(tiny_model, "mr", data=folder)


def test_a_score_that_is_not_finite_is_undefined(tiny_model, small, folder, monkeypatch):
    monkeypatch.setattr("likewise.inference.text_encoder.all_finite", lambda vectors: vectors)
    for parameter in tiny_model.parameters():
        parameter.data.fill_(float("nan"))
    report = evaluate(tiny_model, "mr", data=folder)
    assert report.to_dict()["results"][0]["score"] is None
    assert "Undefined: MR" in report.table()


def test_names():
    assert resolve("transfer")[1] == ("transfer",)
    assert [task.name for task in resolve("SST-2,mr")[0]] == ["sst2", "mr"]


def test_how_each_task_is_tested():
    assert len(BY_NAME["mr"].trials(np.array(["1", "0"] * 50), np.array(["all"] * 100))) == 10
    parts = np.array(["train"] * 60 + ["dev"] * 20 + ["test"] * 20)
    (trial,) = BY_NAME["sst2"].trials(np.array(["1", "0"] * 50), parts)
    assert [check.test.tolist() for check in trial.checks] == [list(range(60, 80))]
    assert trial.test.tolist() == list(range(80, 100))
    (trial,) = BY_NAME["trec"].trials(np.array(["1", "0"] * 50), np.where(parts == "dev", "train", parts))
    assert len(trial.checks) == 10
    assert sorted(np.concatenate([check.test for check in trial.checks])) == list(range(80))


def test_what_is_reported_is_the_accuracy_and_f1_of_mrpc(small, folder):
    task = small["mrpc"]
    texts, _, parts = task.load(folder)
    assert texts[0][1] == "unlike it"
    assert texts[1][0] == texts[1][1]
    prepared = task.read(folder)
    assert prepared.sentences[: len(texts)] == [first for first, _ in texts]
    rng = np.random.default_rng(0)
    known = {text: rng.normal(size=8) for text in prepared.sentences}
    result = prepared.score(np.stack([known[text] for text in prepared.sentences]))
    assert isinstance(result, TransferResult)
    # |u - v| is zero for equal sentences and not for others.
    assert (result.score, result.f1, result.n) == (100.0, 100.0, SIZE)
    assert list(parts) == ["train"] * SIZE + ["test"] * SIZE


@pytest.mark.parametrize(
    ("name", "path", "line"),
    [
        ("sst2", "SST/binary/sentiment-dev", "no label"),
        ("trec", "TREC/TREC_10.label", "XXX:y Who?"),
        ("mrpc", "MRPC/msr_paraphrase_test.txt", "1\t2\t3\tonly one"),
        ("mr", "MR/rt-polarity.neg", "one more"),
    ],
)
def test_malformed_files_are_named(name, path, line, small, folder, says):
    with (folder / path).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    with says(DataError):
        small[name].load(folder)


def test_a_missing_file_is_named(small, tmp_path, says):
    with says(TaskMissing):
        small["mr"].load(tmp_path)


def test_the_real_files(data_dir):
    counts = {}
    for task in TASKS:
        texts, labels, _ = task.load(data_dir / "senteval")
        counts[task.name] = (len(texts), len(set(labels)))
    assert counts == {
        "mr": (10662, 2), "cr": (3775, 2), "subj": (10000, 2), "mpqa": (10606, 2), "sst2": (70042, 2),
        "trec": (5952, 6), "mrpc": (5801, 2),
    }  # fmt: skip
