"""A cross-encoder as the last stage of a search."""

import shutil

import numpy as np
import pytest
from sentence_transformers import CrossEncoder
from typer.testing import CliRunner

from likewise import index
from likewise.cli import build_app
from likewise.encoder.location import LoadError
from likewise.searching import Index, search
from likewise.searching.parts.reranker import in_range

QUERY = "the quiet river"


@pytest.mark.parametrize("first", [1, 3, 20])
def test_the_first_passages_are_in_the_order_of_the_cross_encoder(many, tiny_cross_encoder, first):
    opened = Index(many)
    before = opened.search(QUERY, 30, mark=False)
    settings = {"reranker": str(tiny_cross_encoder), "reranked": first}
    after = opened.search(QUERY, 30, mark=False, pipeline=settings)
    outputs = CrossEncoder(str(tiny_cross_encoder)).predict([(QUERY, hit.text) for hit in before[:first]])
    wanted = [before[i].text for i in np.argsort(-outputs, kind="stable")] + [hit.text for hit in before[first:]]
    assert [hit.text for hit in after] == wanted
    assert [hit.score for hit in after] == pytest.approx([sum(hit.scores.values()) for hit in after])
    assert {hit.text: hit.scores["vectors"] for hit in after} == {hit.text: hit.scores["vectors"] for hit in before}
    if first > 1:  # on the scale of the scores, so that the first ones stay the first
        assert (after[0].score, after[first - 1].score) == pytest.approx((before[0].score, before[first - 1].score))
        assert all(hit.scores["reranker"] == 0 for hit in after[first:])


def test_what_is_excluded_stays_taken_off(many, tiny_cross_encoder):
    query = f"{QUERY}, excluding the dog"
    settings = {"reranker": str(tiny_cross_encoder), "neighbours": 0}
    before = {hit.text: hit for hit in Index(many).search(query, 300, pipeline={"neighbours": 0})}
    for hit in Index(many).search(query, 20, pipeline=settings):
        assert hit.scores["excluded"] == pytest.approx(before[hit.text].scores["excluded"])
        assert hit.score == pytest.approx(sum(hit.scores.values()))


def test_outputs_are_mapped_to_the_range_of_the_scores():
    drawn = np.random.default_rng(0)
    scores, outputs = drawn.normal(size=9), drawn.normal(size=9) * 7
    found = in_range(scores, outputs)
    assert (found.min(), found.max()) == pytest.approx((scores.min(), scores.max()))
    np.testing.assert_allclose(np.corrcoef(found, outputs)[0, 1], 1)
    np.testing.assert_array_equal(in_range(scores, np.ones(9)), scores)


def test_the_record_keeps_it_and_the_command_shows_its_part(
    tmp_path, word_model, tiny_cross_encoder, sentences, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_cross_encoder, tmp_path / "cross")
    (tmp_path / "lines.txt").write_text("\n".join(sentences[:30]) + "\n")
    index("lines.txt", model=word_model, out="kept.index", pipeline={"reranker": "cross"}, quiet=True)
    assert Index("kept.index").pipeline.reranker == str(tmp_path / "cross")
    assert "reranker" in search("kept.index", QUERY)[0].scores
    index("lines.txt", model=word_model, out="plain.index", quiet=True)
    assert "reranker" not in search("plain.index", QUERY)[0].scores
    told = CliRunner().invoke(build_app(), ["search", "plain.index", QUERY, "--reranker", "cross", "--explain"])
    assert told.exit_code == 0
    assert "reranker" in told.output


def test_what_is_no_cross_encoder_is_refused_before_long_work(tmp_path, many, word_model, says):
    with says(LoadError):
        search(many, QUERY, reranker=word_model)
    (tmp_path / "lines.txt").write_text("the cat\n")
    with says(LoadError):
        index(tmp_path / "lines.txt", model=word_model, out=tmp_path / "x", pipeline={"reranker": "./none"}, quiet=True)
    assert not (tmp_path / "x").exists()
