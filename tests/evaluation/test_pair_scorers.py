import json

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sentence_transformers import CrossEncoder
from transformers import AutoModel, AutoTokenizer

from likewise import load
from likewise.encoder.location import LoadError
from likewise.evaluation import CrossEncoderScorer, EvaluationError, evaluate, pair_scorers
from likewise.evaluation.pair_scorers import BertScore, match_tokens
from likewise.evaluation.tasks.negation import FILE
from likewise.runs.progress import Progress

QUIET = Progress(quiet=True)


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
    found = scorer.score_pairs([a for a, _, _ in rows], [b for _, b, _ in rows], QUIET)
    assert found[:20] == pytest.approx(np.array(one_by_one), abs=1e-5)
    assert report["sts-b-dev"].spearman == pytest.approx(100 * spearmanr(found, [r for _, _, r in rows]).statistic)
    with pytest.raises(LoadError, match="cross-encoder:"):
        load(folder)  # it has no sentence vectors


def test_a_cross_encoder_that_gives_no_one_score_is_refused(tiny_base, tmp_path, senteval):
    folder = str(tmp_path / "cross")
    CrossEncoder(str(tiny_base), num_labels=3).save_pretrained(folder)
    with pytest.raises(LoadError, match="3 outputs"):
        evaluate(f"cross-encoder:{folder}", "sts-b-dev", data=senteval)
    with pytest.raises(LoadError, match="cross-encoder"):
        evaluate(f"cross-encoder:{tmp_path / 'nowhere'}", "sts-b-dev", data=senteval)


def by_loop(base, first, second, layer):
    """Precision, recall and F1 of one pair, by plain transformers and loops over tokens."""
    tokenizer, model = AutoTokenizer.from_pretrained(base), AutoModel.from_pretrained(base).eval()
    sides = []
    for text in (first, second):
        tokens = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
        special = tokens.pop("special_tokens_mask")[0].tolist()
        with torch.no_grad():
            hidden = model(**tokens, output_hidden_states=True).hidden_states[layer][0].double().numpy()
        sides.append((hidden / np.linalg.norm(hidden, axis=1, keepdims=True), special))
    (y, y_special), (x, x_special) = sides
    precision = np.mean([max(a @ b for b in x) for a, s in zip(y, y_special, strict=True) if not s])
    recall = np.mean([max(a @ b for b in y) for a, s in zip(x, x_special, strict=True) if not s])
    return precision, recall, 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("layer", [1, -1])
def test_it_is_the_loop_over_tokens(tiny_base, tiny_model, sentences, layer, monkeypatch):
    monkeypatch.setattr(pair_scorers, "BATCH", 3)
    pairs = list(zip(sentences[:7], sentences[30:37], strict=True))
    scorer = BertScore(tiny_model)
    assert scorer.layer == 2
    scorer.layer = layer
    found = scorer.score_pairs(*map(list, zip(*pairs, strict=True)), QUIET)
    expected = [by_loop(tiny_base, a, b, layer)[2] for a, b in pairs]
    assert np.allclose(found, expected, atol=1e-5)


def test_a_sentence_is_most_alike_to_itself_and_f1_is_the_same_in_both_orders(tiny_model, sentences):
    scorer = BertScore(tiny_model)
    assert np.allclose(scorer.score_pairs(sentences[:3], sentences[:3], QUIET), 1, atol=1e-5)
    there, back = (scorer.score_pairs(sentences[a : a + 5], sentences[b : b + 5], QUIET) for a, b in ((0, 9), (9, 0)))
    assert np.allclose(there, back, atol=1e-6)
    assert (there < 1).all()


def test_a_sentence_without_a_word_scores_0():
    ones = torch.ones(2, 3)
    none = torch.tensor([[0, 0, 0], [0, 1, 0]])
    vectors = torch.randn(2, 3, 4)
    for found in match_tokens(vectors, vectors, (ones, none), (ones, none)):
        assert found[0] == 0
        assert found[1] > 0.9


def test_a_model_without_tokens_is_told():
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from likewise.encoder.word_vectors import word_tokenizer

    static = StaticEmbedding(word_tokenizer(["a"], lower=True), embedding_dim=2)
    with pytest.raises(ValueError, match="StaticEmbedding"):
        BertScore(SentenceTransformer(modules=[static]))
