import numpy as np
import pytest

from likewise.evaluation.task import TaskMissing
from likewise.evaluation.tasks.news import NewsTask


def test_pearson_over_the_pairs_above_the_diagonal(monkeypatch):
    from likewise.corpus import bundled

    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(5, 3)).astype(np.float32)
    human = rng.uniform(size=(5, 5))
    human[np.tril_indices(5)] = 99.0  # must not be read
    monkeypatch.setattr(bundled, "news_ratings", lambda: (list("abcde"), human))
    prepared = NewsTask().prepare(None)
    assert prepared.sentences == list("abcde")
    result = prepared.score(vectors)
    cosines, ratings = [], []
    for i in range(5):
        for j in range(i + 1, 5):
            a, b = vectors[i], vectors[j]
            cosines.append(float(a @ b / np.sqrt((a @ a) * (b @ b))))
            ratings.append(human[i, j])
    assert result.score == pytest.approx(100 * np.corrcoef(cosines, ratings)[0, 1], abs=1e-4)
    assert (result.metric, result.n) == ("pearson", 10)


def test_missing_where_the_package_is(monkeypatch):
    from likewise.corpus import bundled
    from likewise.corpus.corpus_options import CorpusError

    def none():
        raise CorpusError("the news ratings need gensim")

    monkeypatch.setattr(bundled, "news_ratings", none)
    with pytest.raises(TaskMissing, match="gensim"):
        NewsTask().prepare(None)


def test_the_real_one():
    pytest.importorskip("gensim", reason="gensim ships the news texts")
    prepared = NewsTask().prepare(None)
    assert len(prepared.sentences) == 50
    assert prepared.score(np.random.default_rng(0).normal(size=(50, 8))).n == 1225
