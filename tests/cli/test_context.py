"""The verbs of `likewise context`."""

import json

import pytest
from typer.testing import CliRunner

from likewise.cli import build_app

TINY = (
    *("index.chunk_sentences=5", "index.hash_bits=12", "states.keep=pieces", "discriminator.reads=text"),
    *("discriminator.embedding=8", "discriminator.hidden=6", "discriminator.rank=6", "discriminator.batch_size=30"),
    "discriminator.held_out=0.3",
)


@pytest.fixture
def articles(tmp_path):
    rows = []
    for number in range(12):
        text = " ".join(f"Sentence {i} of article {number} speaks of thing {i * number}." for i in range(7))
        rows.append({"id": str(number), "title": "T", "sections": [{"heading": "", "paragraphs": [text]}]})
    path = tmp_path / "articles.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def call(*arguments):
    return CliRunner().invoke(build_app(), ["context", *map(str, arguments)])


def test_index_and_train(articles, tmp_path, tiny_base):
    tiny = [word for setting in (*TINY, f"states.encoder={tiny_base}") for word in ("--set", setting)]
    work = tmp_path / "work"
    result = call("index", "--work", work, "--corpus", articles, *tiny)
    assert result.exit_code == 0, result.output
    assert "12 documents, 24 chunks, 84 sentences, 36 contexts" in result.output
    result = call("train", "states", "--work", work, *tiny)
    assert "84 sentences encoded" in result.output
    result = call("train", "discriminator", "--work", work, *tiny)
    assert result.exit_code == 0, result.output
    assert "held-out accuracy" in result.output
    assert (work / "discriminator" / "likewise.json").exists()


def test_errors_are_one_clean_message(articles, tmp_path):
    result = call("train", "discriminator", "--work", tmp_path / "work")
    assert result.exit_code == 2
    assert "build it with 'likewise context index --corpus FILES" in result.output
    result = call("index", "--work", tmp_path / "work", "--corpus", articles, "--set", "index.lefts=3")
    assert result.exit_code == 2
    assert "--set index.lefts=3: there is no option lefts: did you mean left?" in result.output
