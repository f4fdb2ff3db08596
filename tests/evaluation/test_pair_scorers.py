import json

import numpy as np
import pytest
from scipy.stats import spearmanr
from sentence_transformers import CrossEncoder

from likewise import load
from likewise.evaluation import CrossEncoderScorer, EvaluationError, evaluate
from likewise.evaluation.tasks.negation import FILE
from likewise.inference import LoadError


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


def test_bertscore_is_named_before_a_model(senteval, tiny_model, tmp_path):
    tiny_model.save_pretrained(str(tmp_path / "model"))
    report = evaluate(f"bertscore:{tmp_path / 'model'}", "sts-b-dev", data=senteval)
    assert report.model == f"bertscore:{tmp_path / 'model'}"
    assert report.settings["similarity"] == "BERTScore f1, layer 2"
    assert -100 <= report["sts-b-dev"].spearman <= 100
    with pytest.raises(EvaluationError):
        evaluate("bertscore:/nowhere", "sts-c", data=senteval)


def test_a_cross_encoder_is_named_before_its_folder(senteval, made_pairs, tiny_base, tmp_path):
    folder = str(tmp_path / "cross")
    CrossEncoder(str(tiny_base), num_labels=1).save_pretrained(folder)
    report = evaluate(f"cross-encoder:{folder}", "sts-b-dev", data=senteval)
    rows = made_pairs["STS/STSBenchmark/sts-dev.csv"]
    one_by_one = [CrossEncoder(folder).predict([(a, b)])[0] for a, b, _ in rows[:20]]
    scorer = CrossEncoderScorer(folder)
    found = scorer.score_pairs([a for a, _, _ in rows], [b for _, b, _ in rows])
    assert found[:20] == pytest.approx(np.array(one_by_one), abs=1e-5)
    assert report["sts-b-dev"].spearman == pytest.approx(100 * spearmanr(found, [r for _, _, r in rows]).statistic)
    with pytest.raises(LoadError, match="cross-encoder:"):
        load(folder)  # it has no sentence vectors


def test_a_cross_encoder_that_gives_no_one_score_is_refused(tiny_base, tmp_path, senteval):
    folder = str(tmp_path / "cross")
    CrossEncoder(str(tiny_base), num_labels=3).save_pretrained(folder)
    with pytest.raises(LoadError, match="3 outputs"):
        evaluate(f"cross-encoder:{folder}", "sts-b-dev", data=senteval)
    with pytest.raises(LoadError, match="cannot be loaded"):
        evaluate(f"cross-encoder:{tmp_path / 'nowhere'}", "sts-b-dev", data=senteval)
