import importlib
import sys
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from scipy.stats import pearsonr

from likewise.evaluation.pairs import RatedPairs


@pytest.fixture
def fine_tuned(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    sys.modules.pop("facets", None)
    yield importlib.import_module("facets").fine_tuned
    sys.modules.pop("facets", None)


def vectors(model, texts):
    """A random vector for each text, the same for the same text."""
    return np.array([np.random.default_rng(crc32(t.encode())).normal(size=6) for t in texts], dtype=np.float32)


def test_fine_tuning_trains_afresh_for_each_split(fine_tuned, sentences):
    sizes = {"death penalty": 40, "gun control": 30, "gay marriage": 50}
    ends = np.cumsum(list(sizes.values())).tolist()
    subsets = tuple((name, slice(end - size, end)) for (name, size), end in zip(sizes.items(), ends, strict=True))
    pairs = RatedPairs(sentences[:120], sentences[1:121], np.arange(120) % 6.0, subsets)
    seen = []

    def fit(first, second, gold):
        seen.append((len(first), min(gold), max(gold)))
        assert len(first) == len(second) == len(gold)

    result = fine_tuned(pairs, "topics", fit, vectors)
    assert seen == [(80, 0.0, 1.0), (90, 0.0, 1.0), (70, 0.0, 1.0)]
    for part, (name, rows) in zip(result.subsets, subsets, strict=True):
        one, other = (vectors(None, side[rows]).astype(float) for side in (pairs.first, pairs.second))
        cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(one, other, strict=True)]
        assert part.name == name
        assert part.pearson == pytest.approx(100 * pearsonr(cosines, pairs.gold[rows]).statistic)
    assert result.score == pytest.approx(np.mean([part.spearman for part in result.subsets]))
