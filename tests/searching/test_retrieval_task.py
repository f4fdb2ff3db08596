import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest

from likewise.corpus import CorpusError
from likewise.evaluation.registry import resolve
from likewise.evaluation.task import DataError, EvaluationError
from likewise.searching import retrieval_task

DOCUMENTS = {"d1": "river", "d2": "song", "d3": "market", "d4": "king"}
QUERIES = {"q1": "water", "q2": "music", "q3": "nothing"}


def write(folder: Path, grades: list[str], documents=DOCUMENTS, queries=QUERIES, part="test") -> Path:
    folder.mkdir(exist_ok=True)
    for name, rows in (("docs", documents), ("queries", queries)):
        lines = [json.dumps({"_id": key, "text": text}) for key, text in rows.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / f"qrels-{part}.tsv").write_text("\n".join(grades) + "\n")
    return folder


def task(folder: Path, part: str = ""):
    return resolve([f"retrieval:{folder}{part}"])[0][0]


def at(*angles: float) -> np.ndarray:
    """Vectors in the plane, of different lengths, at angles in degrees."""
    turn = np.radians(angles)
    return (np.stack([np.cos(turn), np.sin(turn)], axis=1) * np.arange(1, len(angles) + 1)[:, None]).astype(np.float32)


def test_measures_by_hand(tmp_path):
    folder = write(tmp_path / "own", ["q1\td1\t2", "q1\td3\t1", "q1\td2\t0", "q2\td4\t1", "q3\td1\t0"])
    prepared = task(folder).read(Path())
    assert prepared.sentences == ["river", "song", "market", "king", "water", "music"]
    # q1 stands at 0 and ranks d2, d3, d1, d4; q2 stands at 90 and ranks d4, d1, d3, d2.
    found = prepared.score(at(60, 10, 30, 85, 0, 90))
    first = (1 / math.log2(3) + 2 / math.log2(4)) / (2 + 1 / math.log2(3))
    assert found.score == pytest.approx(100 * (first + 1) / 2, abs=1e-4)
    assert (found.metric, found.recall, found.n, found.left_out, found.documents) == ("ndcg@10", 100, 2, 1, 4)
    assert found.obeyed is None
    assert found.cells()[3:] == ("-", "2", "1", "4")


def test_recall_and_ndcg_of_many_documents_beside_other_formulas(tmp_path, monkeypatch):
    from sklearn.metrics import ndcg_score

    rng = np.random.default_rng(0)
    documents = {f"d{i}": f"text {i}" for i in range(300)}
    queries = {f"q{i}": f"query {i}" for i in range(7)}
    grades = rng.integers(0, 40, size=(7, 300)) * (rng.random((7, 300)) < 0.1) // 13  # 0, 1, 2 or 3
    lines = [f"q{i}\td{j}\t{grades[i, j]}" for i, j in zip(*np.nonzero(grades), strict=True)]
    prepared = task(write(tmp_path / "own", lines, documents, queries)).read(Path())
    vectors = rng.normal(size=(307, 16)).astype(np.float32)
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float64)
    cosines = unit[300:] @ unit[:300].T
    monkeypatch.setattr(retrieval_task, "_CELLS", 900)  # blocks of 3 queries
    found = prepared.score(vectors)
    assert found.score == pytest.approx(100 * ndcg_score(grades, cosines, k=10), abs=1e-4)
    shares = []
    for i in range(7):
        first = np.argsort(-cosines[i])[:100]
        shares.append((grades[i, first] > 0).sum() / (grades[i] > 0).sum())
    assert 0 < np.mean(shares) < 1
    assert found.recall == pytest.approx(100 * np.mean(shares), abs=1e-4)


def test_scores_are_made_in_blocks():
    asked = []
    collection = retrieval_task.Collection(
        {f"d{i}": "x" for i in range(2**20)}, {f"q{i}": "y" for i in range(40)}, {}, {}, 0
    )

    def scores_of(block):
        asked.append((block.stop - block.start) * len(collection.documents))
        return np.full((block.stop - block.start, len(collection.documents)), np.nan, dtype=np.float32)

    own = retrieval_task.RetrievalTask.at("retrieval:x", "x")
    assert math.isnan(own.result(collection, scores_of).score)
    assert asked == [2**24]  # 64 MB in float32, and no more after a score that is no number


def test_violations_by_hand(tmp_path, says):
    folder = write(tmp_path / "own", ["q1\td1\t1", "q1\td2\t1", "q2\td4\t1"])
    (folder / "violations-test.tsv").write_text("q1\td3\nq2\td3\n")
    prepared = task(folder).read(Path())
    # q1 at 0: d1 (10) is nearer than d3 (20), d2 (40) is not; q2 at 90: d4 (80) is.
    assert prepared.score(at(10, 40, 20, 80, 0, 90)).obeyed == pytest.approx(100 * 2 / 3)
    # A tie is not nearer.
    assert prepared.score(np.ones((6, 2), dtype=np.float32)).obeyed == 0
    (folder / "violations-test.tsv").write_text("q1\td9\n")
    with says(DataError):
        task(folder).read(Path())


def test_the_layout_of_beir(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n7\tx\t1\n")
    with gzip.open(tmp_path / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write('{"_id": "x", "title": "The title", "text": "The text", "metadata": {}}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": 7, "text": "asked"}\n{"_id": 8, "text": "of another part"}\n')
    assert task(tmp_path).read(Path()).sentences == ["The title The text", "asked"]
    assert task(tmp_path).read(Path()).score(np.ones((2, 3), dtype=np.float32)).left_out == 0


def test_a_query_that_is_a_document_does_not_find_itself(tmp_path):
    documents = {"a": "the same text", "b": "another one", "c": "a third"}
    prepared = task(write(tmp_path / "own", ["a\tb\t1"], documents, {"a": "the same text"})).read(Path())
    assert prepared.score(at(0, 10, 20, 0)).score == 100
    # The same id alone says nothing: there ids of queries and documents are numbers from 1.
    prepared = task(write(tmp_path / "own", ["a\tb\t1"], documents, {"a": "a question"})).read(Path())
    assert prepared.score(at(0, 10, 20, 0)).score == pytest.approx(100 / math.log2(3), abs=1e-4)


def test_parts(tmp_path, says):
    folder = write(write(tmp_path / "Own", ["q1\td1\t1"]), ["q2\td2\t1"], part="dev")
    tasks, _ = resolve([f"RETRIEVAL:{folder}", f"retrieval:{folder}:dev"])
    assert [one.name for one in tasks] == [f"retrieval:{folder}", f"retrieval:{folder}:dev"]
    assert [one.title for one in tasks] == ["Own", "Own dev"]
    assert [one.read(Path()).sentences[-1] for one in tasks] == ["water", "music"]
    with says(DataError):
        task(folder, ":train").read(Path())


def test_a_broken_model_has_no_score(tmp_path):
    prepared = task(write(tmp_path / "own", ["q1\td1\t1"])).read(Path())
    assert math.isnan(prepared.score(np.full((5, 2), np.nan, dtype=np.float32)).score)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("qrels-test.tsv", "q1\td1\t1\nq1\td9\t1\n"),
        ("qrels-test.tsv", "q1\td1\t1\nq9\td1\t1\n"),
        ("qrels-test.tsv", "q9\td9\t1\n"),
        ("qrels-test.tsv", "q1\td1\t1\nq1\td1\t2\n"),
        ("qrels-test.tsv", "q1\td1\t1\nq2\td1\thigh\n"),
        ("qrels-test.tsv", "q1 d1 1\n"),
        ("qrels-test.tsv", "\n"),
        ("qrels-test.tsv", "q1\td1\t1700000000\n"),
        ("qrels-test.tsv", "q1\td1\t0\n"),
        ("docs.jsonl", '{"_id": "d1", "text": "a"}\n{"_id": "d1", "text": "b"}\n'),
        ("docs.jsonl", ""),
        ("docs.jsonl", '{"_id": "d1", "body": "a"}\n'),
        ("queries.jsonl", '{"_id": "q1", "text": " "}\n'),
        ("queries.jsonl", "water\n"),
    ],
)
def test_broken_files_are_named_with_the_line(file, text, tmp_path, says):
    folder = write(tmp_path / "own", ["q1\td1\t1"])
    (folder / file).write_text(text)
    with says((EvaluationError, CorpusError)):
        task(folder).read(Path())


def test_other_encodings_are_read_and_missing_files_are_named(tmp_path, says):
    folder = write(tmp_path / "own", ["q1\td1\t1"])
    good = (folder / "docs.jsonl").read_bytes()
    (folder / "docs.jsonl").write_bytes(good + '{"_id": "d5", "text": "café"}'.encode("latin-1"))
    assert "café" in task(folder).read(Path()).sentences
    (folder / "docs.jsonl").unlink()
    with says(DataError):
        task(folder).read(Path())
    with says(DataError):
        task(tmp_path / "gone").read(Path())
