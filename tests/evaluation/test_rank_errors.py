import numpy as np
import pytest
from scipy.stats import spearmanr

from likewise.evaluation.pairs import RatedPairs
from likewise.evaluation.rank_errors import (
    analyze_errors,
    rank_errors,
    ranked,
    ranks,
    spearman_of_ranks,
)
from likewise.evaluation.registry import rated_task
from likewise.evaluation.suite import evaluate
from likewise.evaluation.task import DataError, EvaluationError


def ranks_by_counting(values):
    """The mean of the places that a value could take, by comparing all with all."""
    return [sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values]


def test_ranks_beside_counting_with_ties():
    values = np.random.default_rng(0).integers(0, 20, 60) / 4
    assert ranks(values).tolist() == ranks_by_counting(values.tolist())


def test_equation_10_agrees_with_scipy_where_there_are_no_ties():
    rng = np.random.default_rng(1)
    gold, cosines = rng.permutation(200) / 40, rng.normal(size=200)
    assert len(set(cosines)) == len(set(gold)) == 200
    ours = spearman_of_ranks(ranks(cosines), ranks(gold))
    assert ours == pytest.approx(spearmanr(cosines, gold).statistic, abs=1e-12)
    assert ours == pytest.approx(1 - 6 * rank_errors(ranks(cosines), ranks(gold)).sum() / (200**3 - 200))
    # With ties the two differ, and that is why the score is scipy's.
    tied = np.round(gold)
    assert spearman_of_ranks(ranks(cosines), ranks(tied)) != pytest.approx(spearmanr(cosines, tied).statistic, abs=1e-9)


def test_worst_pairs_beside_a_sort_by_hand():
    rng = np.random.default_rng(2)
    gold, cosines = rng.integers(0, 11, 40) / 2, rng.normal(size=40)
    pairs = RatedPairs([f"a{i}" for i in range(40)], [f"b{i}" for i in range(40)], gold,
                  (("one", slice(0, 25)), ("two", slice(25, 40))))  # fmt: skip
    by_rating, by_cosine = ranks_by_counting(gold.tolist()), ranks_by_counting(cosines.tolist())
    expected = sorted(range(40), key=lambda i: (-((by_rating[i] - by_cosine[i]) ** 2), i))[:7]
    worst = ranked(cosines, pairs, rated_task("sts14"), 7).worst
    assert [pair.index for pair in worst] == expected
    for pair in worst:
        i = pair.index
        assert (pair.first, pair.second, pair.gold, pair.cosine) == (f"a{i}", f"b{i}", gold[i], cosines[i])
        assert (pair.gold_rank, pair.estimated_rank) == (by_rating[i], by_cosine[i])
        assert pair.error == (by_cosine[i] - by_rating[i]) ** 2
        assert pair.direction == ("overestimated" if by_cosine[i] > by_rating[i] else "underestimated")
        assert pair.subset == ("one" if i < 25 else "two")


def test_the_score_is_that_of_evaluate(tiny_model, senteval):
    found = analyze_errors(tiny_model, "STSB-dev", data=senteval, worst=3)
    assert found.spearman == pytest.approx(evaluate(tiny_model, "sts-b-dev", data=senteval).results[0].score)
    assert (found.task, found.pairs, len(found.worst), len(found.gold_ranks)) == ("sts-b-dev", 1500, 3, 1500)
    assert found.worst[0].error >= found.worst[1].error >= found.worst[2].error
    # The two formulas are close where ties are few beside the pairs, and equation 10 is the looser one.
    assert found.spearman_equation_10 == pytest.approx(found.spearman, abs=1)
    assert found.to_dict()["worst"][0]["direction"] in ("overestimated", "underestimated")


def test_what_cannot_be_analyzed_is_told(tiny_model, senteval, tmp_path):
    with pytest.raises(EvaluationError, match="not one task of rated pairs"):
        analyze_errors(tiny_model, "sts", data=senteval)
    with pytest.raises(EvaluationError, match="not one task of rated pairs"):
        analyze_errors(tiny_model, "semantoneg", data=senteval)
    with pytest.raises(EvaluationError, match="sick-r"):
        analyze_errors(tiny_model, "sts99", data=senteval)
    with pytest.raises(EvaluationError, match="1 or more"):
        analyze_errors(tiny_model, "sts-b", data=senteval, worst=0)
    (tmp_path / "empty" / "STS").mkdir(parents=True)
    with pytest.raises(DataError, match="there is no file"):
        analyze_errors(tiny_model, "sts-b", data=tmp_path / "empty")
    with pytest.raises(EvaluationError, match="not finite"):
        ranks(np.array([1.0, np.nan]))
