"""An index as `likewise.evaluate` scores it: documents by the best of their passages."""

import json
import math
from pathlib import Path

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


@pytest.fixture(scope="module")
def pdfs(word_model, tmp_path_factory):
    """The index of PDF files, in passages of a few rows."""
    files = Path(__file__).parents[1] / "documents" / "files"
    out = tmp_path_factory.mktemp("pdfs") / "a.index"
    return index(sorted(files.glob("*.pdf")), model=word_model, out=out, words=60, quiet=True)


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


def test_an_index_of_other_documents_is_an_error_that_says_the_cure(judged, many, says):
    with says(DataError):
        likewise.evaluate(likewise.Index(many), f"retrieval:{judged[0]}")


def test_the_command_takes_the_folder_of_an_index(judged):
    folder, _, opened = judged
    expected = likewise.evaluate(opened, f"retrieval:{folder}").results[0].score
    done = CliRunner().invoke(build_app(), ["evaluate", str(opened.path), "--tasks", f"retrieval:{folder}"])
    assert done.exit_code == 0, done.output
    assert f"{expected:.2f}" in done.output


@pytest.mark.parametrize(
    ("question", "name", "row"),
    [
        ("price of Pump P-107 in stock 10", "catalogue.pdf", "| Pump P-107 | 19.50 | 10 | Bolt Ltd |"),
        ("which part costs 23.50 at Core Ltd", "catalogue.pdf", "| Pump P-111 | 23.50 | 14 | Core Ltd |"),
        ("stock of Pump P-113", "catalogue.pdf", "| Pump P-113 | 25.50 | 16 | Bolt Ltd |"),
        ("parts of Acme Ltd for 24.50", "catalogue.pdf", "| Pump P-112 | 24.50 | 15 | Acme Ltd |"),
        ("12.50 Pump P-100 Acme", "catalogue.pdf", "| Pump P-100 | 12.50 | 3 | Acme Ltd |"),
        ("supplier Abbey Ltd price", "reportlab-table.pdf", "| Pump P-107 | 27.50 | 5 | Abbey Ltd |"),
        ("parts of Harbour Ltd for 28.50", "reportlab-table.pdf", "| Pump P-108 | 28.50 | 6 | Harbour Ltd |"),
        ("Pump P-110 30.50 Castle", "reportlab-table.pdf", "| Pump P-110 | 30.50 | 8 | Castle Ltd |"),
        ("price of the pump of Mill Ltd", "reportlab-table.pdf", "| Pump P-106 | 26.50 | 4 | Mill Ltd |"),
        ("29.50 Meadow Ltd", "reportlab-table.pdf", "| Pump P-109 | 29.50 | 7 | Meadow Ltd |"),
    ],
)
def test_a_question_about_a_cell_finds_the_row_of_a_pdf(pdfs, question, name, row):
    """The rows are numbers and names, which the words of a search find; the tiny model of the tests cannot."""
    hit = pdfs.search(question, 1)[0]
    assert (Path(hit.file).name, hit.line) == (name, 1)
    assert row in hit.text
    assert hit.text.startswith("| Part | Price | Stock | Supplier |")
    assert hit.title == ("Prices of the spare parts" if name == "reportlab-table.pdf" else "")
