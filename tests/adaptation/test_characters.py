import pytest
from typer.testing import CliRunner

import likewise
from likewise.adaptation import train_characters
from likewise.cli import build_app
from likewise.errors import LikewiseError

TEXTS = [
    f"{who} {what}." for who in ("Die Pumpe", "Der Techniker", "Fast niemand") for what in ("kam", "ging", "schlief")
]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def test_the_folder_is_a_model_for_every_verb(corpus, tmp_path):
    made = train_characters(corpus, out=tmp_path / "model", width=64, quiet=True)
    assert made.record["recipe"] == "characters"
    assert made.record["corpus"]["sentences"] == len(TEXTS)
    model = likewise.load(made.path)
    near, far = (
        likewise.similarity(model, "Die Pumpen kamen.", text) for text in ("Die Pumpe kam.", "Fast niemand ging.")
    )
    assert near > far
    index = likewise.index(corpus, model=made.path, out=tmp_path / "my.index", quiet=True)
    assert likewise.search(index, "Der Techniker schläft", 1)[0].text == "Der Techniker schlief."
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("5\tDie Pumpe kam.\tPumpen kamen.\n0\tDie Pumpe kam.\tFast niemand schlief.\n", encoding="utf-8")
    assert likewise.evaluate(made.path, f"pairs:{pairs}")[f"pairs:{pairs}"].score == pytest.approx(100)


def test_the_same_call_returns_the_finished_model_and_another_is_refused(corpus, tmp_path, says):
    first = train_characters(corpus, out=tmp_path / "model", width=64, quiet=True)
    again = train_characters(corpus, out=tmp_path / "model", width=64, quiet=True)
    assert again.record == first.record
    with says(LikewiseError):
        train_characters(corpus, out=tmp_path / "model", width=32, quiet=True)


def test_a_single_sentence_is_too_little(tmp_path, says):
    (tmp_path / "one.txt").write_text("Die Pumpe kam.\n", encoding="utf-8")
    with says(LikewiseError):
        train_characters(tmp_path / "one.txt", out=tmp_path / "model", quiet=True)
    assert not (tmp_path / "model").exists()


def test_the_command(corpus, tmp_path):
    arguments = ["train", "characters", "--corpus", str(corpus), "--out", str(tmp_path / "model"), "--width", "32"]
    result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 0, result.output
    assert "dimensions" in result.output
    assert likewise.load(tmp_path / "model").encode("Pumpe").any()
