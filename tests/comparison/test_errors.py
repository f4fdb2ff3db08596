import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from likewise.comparison.analyses import analyze_errors, rank_errors, ranked, ranks, spearman_of_ranks
from likewise.evaluation.pairs import RatedPairs
from likewise.evaluation.registry import rated_task
from likewise.evaluation.suite import evaluate
from likewise.evaluation.task import DataError, EvaluationError

FIRST = ["I oppose it.", "<b>tags</b> & a | bar", "It rains.", "A man sings."]
SECOND = ["I support it.", "tags", "It pours.", "A man is singing."]


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


def test_the_score_is_that_of_evaluate(tiny_model, data):
    analysis = analyze_errors(tiny_model, "STSB-dev", data=data, worst=3)
    assert analysis.spearman == pytest.approx(evaluate(tiny_model, "sts-b-dev", data=data).results[0].score)
    assert (analysis.task, analysis.pairs, len(analysis.worst), len(analysis.gold_ranks)) == (
        "sts-b-dev",
        1500,
        3,
        1500,
    )
    assert analysis.worst[0].error >= analysis.worst[1].error >= analysis.worst[2].error


@pytest.mark.parametrize(("task", "worst"), [("sts", 1), ("semantoneg", 1), ("sts99", 1), ("sts-b", 0)])
def test_what_cannot_be_analyzed_is_an_error(task, worst, tiny_model, data):
    with pytest.raises(EvaluationError):
        analyze_errors(tiny_model, task, data=data, worst=worst)


def test_missing_data_and_broken_vectors_are_errors(tiny_model, tmp_path):
    (tmp_path / "empty" / "STS").mkdir(parents=True)
    with pytest.raises(DataError, match=str(tmp_path / "empty")):
        analyze_errors(tiny_model, "sts-b", data=tmp_path / "empty")
    with pytest.raises(EvaluationError):
        ranks(np.array([1.0, np.nan]))


def test_the_files_hold_the_worst_pairs(tmp_path):
    pytest.importorskip("matplotlib")
    pairs = RatedPairs(FIRST, SECOND, np.array([0.0, 5.0, 4.0, 4.0]), (("forum", slice(0, 4)),))
    analysis = ranked(np.array([0.9, 0.1, 0.2, 0.3]), pairs, rated_task("sts14"), 3, "runs/a")
    analysis = replace(analysis, spearman=-60.0, spearman_equation_10=-65.0)
    facts, table, picture = analysis.write(tmp_path / "new")
    content = json.loads(facts.read_text())
    assert content["worst"][0]["direction"] == "overestimated"
    assert (content["worst"][0]["gold_rank"], content["worst"][0]["estimated_rank"]) == (1, 4)
    assert content["pairs"] == 4
    lines = table.read_text().splitlines()
    row = next(i for i, line in enumerate(lines) if "I oppose it." in line)
    assert [cell.strip() for cell in lines[row].split(" | ")][2:] == ["overestimated", "0", "0.900", "1", "4", "9 |"]
    assert "I support it." in lines[row + 1]
    assert "a \\| bar" in "\n".join(lines)
    assert "| 2.5 |" in "\n".join(lines), "a gold rank that two pairs share"
    assert picture.read_bytes().startswith(b"\x89PNG")
