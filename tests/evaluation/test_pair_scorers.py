"""Scorers of pairs without sentence vectors, and scorers that other packages register."""

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from likewise.evaluation import EvaluationError, evaluate
from likewise.evaluation.tasks.negation import FILE


class Overlap:
    """Scores by the share of common words; a PairScorer."""

    name = "overlap"
    settings = {"similarity": "overlap", "precision": "exact"}  # noqa: RUF012

    def score_pairs(self, first, second, progress):
        words = [(set(a.split()), set(b.split())) for a, b in zip(first, second, strict=True)]
        return np.array([len(a & b) / len(a | b) for a, b in words])


def test_a_scorer_without_vectors_gets_a_report_as_a_model_does(senteval, made_pairs, tmp_path):
    row = json.dumps({"input": "a", "sentences": ["b", "c", "d"], "label": 0})
    (senteval / FILE).parent.mkdir()
    (senteval / FILE).write_text(f"{row}\n" * 3152)
    report = evaluate(Overlap(), "sts16,sts-b-dev,semantoneg", data=senteval)
    assert report.model == "overlap"
    rows = made_pairs["STS/STSBenchmark/sts-dev.csv"]
    scores = Overlap().score_pairs([a for a, _, _ in rows], [b for _, b, _ in rows], None)
    assert report["sts-b-dev"].spearman == pytest.approx(100 * spearmanr(scores, [r for _, _, r in rows]).statistic)
    assert report["sts-b-dev"].n == 1500
    assert len(report["sts16"].subsets) == 5
    assert "sentence vectors" in report.missing[0].reason
    report.to_json(tmp_path / "report.json")


def test_an_average_needs_all_seven(senteval):
    assert evaluate(Overlap(), "sts", data=senteval).average is not None
    (senteval / "SICK" / "SICK_test_annotated.txt").unlink()
    assert evaluate(Overlap(), "sts", data=senteval).average is None


def test_a_scorer_of_a_package_that_is_not_installed_says_what_brings_it(senteval, monkeypatch, says):
    monkeypatch.setattr("likewise.evaluation.suite.entry_points_of", lambda group: [])
    with says(EvaluationError):
        evaluate("bertscore:model", "sts-b-dev", data=senteval)
