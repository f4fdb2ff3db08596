import json

import pytest

from likewise.corpus.documents import read_triplets


@pytest.fixture
def articles(tmp_path):
    rows = [
        {
            "id": str(i),
            "title": f"Article {i}",
            "sections": [
                {"heading": name, "paragraphs": [" ".join(f"Number {n} of {name} in {i}." for n in "abc")]}
                for name in ("History", "Economy")
            ],
        }
        for i in range(5)
    ]
    path = tmp_path / "articles.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_writes_triplets(cli, articles, tmp_path):
    out = tmp_path / "triplets.csv"
    result = cli("sections", *[str(articles), "--out", str(out), "--n", "6", "--skip", "5"])
    assert result.exit_code == 0, result.output
    assert "6 triplets" in result.stdout
    assert [t.article for t in read_triplets(out)] == ["Article 2"] * 4 + ["Article 3"] * 2
    result = cli("sections", *[str(articles), "--out", str(out), "--n", "100"])
    assert "20 triplets, of 100:" in result.stdout


def test_errors_are_one_message(cli, articles, tmp_path):
    result = cli("sections", *[str(articles), "--out", str(tmp_path / "no" / "t.csv")])
    assert result.exit_code == 2
    assert "create it first" in result.stderr
    result = cli("sections", *[str(tmp_path / "none.jsonl"), "--out", str(tmp_path / "t.csv")])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
