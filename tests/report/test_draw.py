import numpy as np
import pytest

from likewise.report.draw import draw_sentences, partners
from likewise.report.writing import ReportError


def test_the_draw_depends_on_the_seed_alone(tmp_path):
    texts = [f"sentence {i}" for i in range(50)]
    drawn, source = draw_sentences(texts, None, 10, 42)
    assert (len(set(drawn)), source) == (10, "a list")
    assert draw_sentences([*texts[::-1], *texts, ""], None, 10, 42)[0] == drawn
    assert draw_sentences(texts, None, 10, 43)[0] != drawn
    assert sorted(draw_sentences(texts, None, 1000, 1)[0]) == sorted(texts)
    (tmp_path / "in.txt").write_text("\n\n".join(texts), encoding="utf-8")
    assert draw_sentences(tmp_path / "in.txt", None, 10, 42) == (drawn, str(tmp_path / "in.txt"))


def test_partners_are_others_and_each_is_taken_once():
    for count in (2, 3, 10, 1001):
        other = partners(count, seed=7)
        assert (other != np.arange(count)).all()
        assert sorted(other.tolist()) == list(range(count))
    assert partners(10, seed=7).tolist() == partners(10, seed=7).tolist() != partners(10, seed=8).tolist()


def test_what_cannot_be_drawn_is_told(tmp_path):
    with pytest.raises(ReportError, match="2 sentences"):
        draw_sentences(["a", "b"], None, 1, 0)
    with pytest.raises(ReportError, match="1 different"):
        draw_sentences(["a", " a "], None, 5, 0)
    (tmp_path / "STS").mkdir()
    with pytest.raises(ReportError, match="7 of 7 are missing"):
        draw_sentences(None, tmp_path, 5, 0)


def test_the_real_test_sets(data_dir):
    drawn, source = draw_sentences(None, data_dir, 300, 42)
    assert len(set(drawn)) == 300
    assert source == "the test sets STS12, STS13, STS14, STS15, STS16, STS-B, SICK-R"
