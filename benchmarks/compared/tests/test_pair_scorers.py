import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sentence_transformers import CrossEncoder
from transformers import AutoModel, AutoTokenizer

from compared import pair_scorers
from compared.pair_scorers import BertScore, CrossEncoderScorer, match_tokens
from likewise import load
from likewise.encoder.location import LoadError
from likewise.evaluation import EvaluationError, evaluate
from likewise.runs.progress import Progress

QUIET = Progress(quiet=True)


@pytest.fixture
def rated(sentences, tmp_path):
    """A task of rated pairs, and its rows."""
    rows = [
        (first, second, i % 6) for i, (first, second) in enumerate(zip(sentences[:40], sentences[40:80], strict=True))
    ]
    path = tmp_path / "rated.tsv"
    path.write_text("".join(f"{rating}\t{first}\t{second}\n" for first, second, rating in rows), encoding="utf-8")
    return f"pairs:{path}", rows


def test_bertscore_is_named_before_a_model(rated, tiny_model, tmp_path):
    tiny_model.save_pretrained(str(tmp_path / "model"))
    report = evaluate(f"bertscore:{tmp_path / 'model'}", rated[0])
    assert report.model == f"bertscore:{tmp_path / 'model'}"
    assert report.settings["similarity"] == "BERTScore f1, layer 2"
    assert -100 <= report[rated[0]].spearman <= 100
    with pytest.raises(EvaluationError):
        evaluate("bertscore:/nowhere", "sts-c")


def test_a_cross_encoder_is_named_before_its_folder(rated, tiny_base, tmp_path):
    folder = str(tmp_path / "cross")
    CrossEncoder(str(tiny_base), num_labels=1).save_pretrained(folder)
    report = evaluate(f"cross-encoder:{folder}", rated[0])
    rows = rated[1]
    one_by_one = [CrossEncoder(folder).predict([(a, b)])[0] for a, b, _ in rows[:20]]
    scorer = CrossEncoderScorer(folder)
    found = scorer.score_pairs([a for a, _, _ in rows], [b for _, b, _ in rows], QUIET)
    assert found[:20] == pytest.approx(np.array(one_by_one), abs=1e-5)
    assert report[rated[0]].spearman == pytest.approx(100 * spearmanr(found, [r for _, _, r in rows]).statistic)
    with pytest.raises(LoadError, match="cross-encoder:"):
        load(folder)  # it has no sentence vectors


def test_a_cross_encoder_that_gives_no_one_score_is_refused(tiny_base, tmp_path, rated):
    folder = str(tmp_path / "cross")
    CrossEncoder(str(tiny_base), num_labels=3).save_pretrained(folder)
    with pytest.raises(LoadError, match="3 outputs"):
        evaluate(f"cross-encoder:{folder}", rated[0])
    with pytest.raises(LoadError, match="cross-encoder"):
        evaluate(f"cross-encoder:{tmp_path / 'nowhere'}", rated[0])


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
