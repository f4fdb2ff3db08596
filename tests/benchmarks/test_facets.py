import importlib
import sys
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from scipy.stats import pearsonr

from likewise.evaluation.pairs import RatedPairs


@pytest.fixture
def facets(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    sys.modules.pop("facets", None)
    yield importlib.import_module("facets")
    sys.modules.pop("facets", None)


@pytest.fixture
def pairs(sentences):
    """120 pairs on three topics."""
    sizes = {"death penalty": 40, "gun control": 30, "gay marriage": 50}
    ends = np.cumsum(list(sizes.values())).tolist()
    subsets = tuple((name, slice(end - size, end)) for (name, size), end in zip(sizes.items(), ends, strict=True))
    return RatedPairs(sentences[:120], sentences[1:121], np.arange(120) % 6.0, subsets)


def test_folds_share_topics_and_topics_leave_one_out(facets, pairs):
    cut = facets.facet_folds(pairs, "folds")
    assert sorted(np.concatenate([fold.test for fold in cut])) == list(range(120))
    for fold in cut:
        assert not set(fold.train) & set(fold.test)
        assert [int((pairs.subset_names[fold.test] == name).sum()) for name, _ in pairs.subsets] == [4, 3, 5]
    for fold, (name, _) in zip(facets.facet_folds(pairs, "topics"), pairs.subsets, strict=True):
        assert fold.name == name
        assert set(pairs.subset_names[fold.test]) == {name}
        assert len(set(pairs.subset_names[fold.train])) == 2
        assert len(fold.train) + len(fold.test) == 120


def vectors(model, texts):
    """A random vector for each text, the same for the same text."""
    return np.array([np.random.default_rng(crc32(t.encode())).normal(size=6) for t in texts], dtype=np.float32)


def test_fine_tuning_trains_afresh_for_each_split(facets, pairs):
    seen = []

    def fit(first, second, gold):
        seen.append((len(first), min(gold), max(gold)))
        assert len(first) == len(second) == len(gold)

    result = facets.fine_tuned(pairs, "topics", fit, vectors)
    assert seen == [(80, 0.0, 1.0), (90, 0.0, 1.0), (70, 0.0, 1.0)]
    for part, (name, rows) in zip(result.subsets, pairs.subsets, strict=True):
        one, other = (vectors(None, side[rows]).astype(float) for side in (pairs.first, pairs.second))
        cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(one, other, strict=True)]
        assert part.name == name
        assert part.pearson == pytest.approx(100 * pearsonr(cosines, pairs.gold[rows]).statistic)
    assert result.score == pytest.approx(np.mean([part.spearman for part in result.subsets]))
