import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from likewise.evaluation.pair_scorers import BertScore, match_tokens


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


@pytest.mark.parametrize("measure", ["precision", "recall", "f1"])
@pytest.mark.parametrize("layer", [1, -1])
def test_it_is_the_loop_over_tokens(tiny_base, tiny_model, sentences, measure, layer):
    pairs = list(zip(sentences[:7], sentences[30:37], strict=True))
    scorer = BertScore(tiny_model, layer=layer, measure=measure, batch_size=3)
    found = scorer.score_pairs(*map(list, zip(*pairs, strict=True)))
    place = ("precision", "recall", "f1").index(measure)
    expected = [by_loop(tiny_base, a, b, layer)[place] for a, b in pairs]
    assert np.allclose(found, expected, atol=1e-5)


def test_a_sentence_is_most_alike_to_itself_and_f1_is_the_same_in_both_orders(tiny_model, sentences):
    scorer = BertScore(tiny_model)
    assert np.allclose(scorer.score_pairs(sentences[:3], sentences[:3]), 1, atol=1e-5)
    there, back = (scorer.score_pairs(sentences[a : a + 5], sentences[b : b + 5]) for a, b in ((0, 9), (9, 0)))
    assert np.allclose(there, back, atol=1e-6)
    assert (there < 1).all()


def test_a_sentence_without_a_word_scores_0():
    ones = torch.ones(2, 3)
    none = torch.tensor([[0, 0, 0], [0, 1, 0]])
    vectors = torch.randn(2, 3, 4)
    for found in match_tokens(vectors, vectors, (ones, none), (ones, none)):
        assert found[0] == 0
        assert found[1] > 0.9


def test_layers_that_are_not_there_and_models_without_tokens_are_told(tiny_model, tmp_path):
    with pytest.raises(ValueError, match="0 to 2"):
        BertScore(tiny_model, layer=3)
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from likewise.encoder.word_vectors import word_tokenizer

    static = StaticEmbedding(word_tokenizer(["a"], lower=True), embedding_dim=2)
    with pytest.raises(ValueError, match="StaticEmbedding"):
        BertScore(SentenceTransformer(modules=[static]))
