"""An index as `likewise.evaluate` scores it: documents by the best of their passages."""

import json
import math

import pytest
from typer.testing import CliRunner

import likewise
from likewise import index
from likewise.cli import build_app
from likewise.evaluation.task import DataError


@pytest.fixture
def judged(sentences, word_model, tmp_path):
    """A folder of documents of two paragraphs each, with queries, and their index."""
    folder = tmp_path / "own"
    folder.mkdir()
    texts = {f"d{i}": f"{sentences[2 * i]}\n\n{sentences[2 * i + 1]}" for i in range(20)}
    rows = [json.dumps({"_id": name, "text": text}) for name, text in texts.items()]
    (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    queries = {"q1": sentences[7], "q2": sentences[30]}
    asked = [json.dumps({"_id": name, "text": text}) for name, text in queries.items()]
    (folder / "queries.jsonl").write_text("\n".join(asked) + "\n")
    (folder / "qrels-test.tsv").write_text("q1\td3\t1\nq1\td5\t1\nq2\td2\t1\n")
    options = likewise.CorpusOptions(field="text")
    index(folder / "corpus.jsonl", model=word_model, out=tmp_path / "a.index", corpus_options=options, quiet=True)
    return folder, queries, likewise.Index(tmp_path / "a.index")


def test_a_document_counts_by_its_best_passage_with_every_part_of_the_search(judged):
    folder, queries, opened = judged
    report = likewise.evaluate(opened, f"retrieval:{folder}")
    found = report[f"retrieval:{folder}"]
    wanted = {"q1": {"d3", "d5"}, "q2": {"d2"}}
    gains = []
    for name, text in queries.items():
        ranking = list(dict.fromkeys(hit.id for hit in opened.search(text, 200)))
        gained = sum(1 / math.log2(2 + i) for i, one in enumerate(ranking[:10]) if one in wanted[name])
        gains.append(gained / sum(1 / math.log2(2 + i) for i in range(len(wanted[name]))))
    assert found.score == pytest.approx(100 * sum(gains) / 2, abs=1e-4)
    assert 40 < found.score < 100
    assert found.obeyed is None
    assert report.model == str(opened.path)
    assert "words 0.4" in report.settings["similarity"]


def test_other_tasks_are_named_as_missing(judged):
    (judged[0] / "pairs.tsv").write_text("1\tthe cat\ta cat\n0\tthe cat\ta river\n")
    report = likewise.evaluate(judged[2], f"pairs:{judged[0] / 'pairs.tsv'}")
    assert not report.results
    assert "is an index, which is scored on retrieval:FOLDER" in report.missing[0].reason


def test_an_index_of_other_documents_is_an_error_that_says_the_cure(judged, many):
    with pytest.raises(DataError, match=r"no document of .*own. Index the file of these documents"):
        likewise.evaluate(likewise.Index(many), f"retrieval:{judged[0]}")


def test_the_command_takes_the_folder_of_an_index(judged):
    folder, _, opened = judged
    expected = likewise.evaluate(opened, f"retrieval:{folder}").results[0].score
    done = CliRunner().invoke(build_app(), ["evaluate", str(opened.path), "--tasks", f"retrieval:{folder}"])
    assert done.exit_code == 0, done.output
    assert f"{expected:.2f}" in done.output
