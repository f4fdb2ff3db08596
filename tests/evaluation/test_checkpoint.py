import random

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr, spearmanr
from sentence_transformers import CrossEncoder

from likewise.corpus.words import DividedText
from likewise.encoder.build import build_encoder
from likewise.encoder.modules import with_modules
from likewise.encoder.training_modules import PairClassifier
from likewise.evaluation import checkpoint
from likewise.evaluation.checkpoint import (
    PairPredictions,
    TokenCache,
    labels_evaluator,
    ratings_evaluator,
    scores_evaluator,
    sentences_evaluator,
    sts_b_dev_evaluator,
    triplets_evaluator,
)
from likewise.evaluation.pairs import nearness
from likewise.evaluation.task import DataError, Items
from likewise.evaluation.vector_measures import alignment, separation_of_each, uniformity

RATINGS = [0, 1, 2, 3, 4, 0, 1, 2, 3]
FIRST = ["the cat sees the dog", "the old river", "a market", "the small song"]
SECOND = ["the garden", "the captain", "the old river", "a window"]
SCORES = [0.1, 0.7, 0.4, 0.9]
A, B = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 2.0]])


def test_metrics_of_rated_pairs(tiny_model, sentences):
    first, second = sentences[:30], sentences[20:50]
    ratings = [random.Random(i).randint(0, 20) / 4 for i in range(30)]
    found = ratings_evaluator(first, second, ratings)(tiny_model)
    a, b = (tiny_model.encode(side).astype(np.float64) for side in (first, second))
    cosines = [x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in zip(a, b, strict=True)]
    same = np.array(ratings) > 4
    assert same.any()
    assert found == {
        "sts_dev_spearman": pytest.approx(100 * spearmanr(cosines, ratings).statistic, abs=0.1),
        "sts_dev_pearson": pytest.approx(100 * pearsonr(cosines, ratings).statistic, abs=1e-2),
        "sts_dev_alignment": pytest.approx(alignment(a[same], b[same]), abs=1e-5),
        # Sentences 20 to 29 are on both sides and count once.
        "sts_dev_uniformity": pytest.approx(uniformity(tiny_model.encode(sentences[:50])), abs=1e-5),
    }


def test_leaves_everything_as_it_was(tiny_model, sentences):
    evaluator = ratings_evaluator(sentences[:9], sentences[9:18], RATINGS)
    tiny_model.train()
    tiny_model[0].eval()  # a frozen part stays frozen
    flags = [module.training for module in tiny_model.modules()]
    assert True in flags
    assert False in flags
    torch.manual_seed(5), np.random.seed(5), random.seed(5)
    expected = torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()
    torch.manual_seed(5), np.random.seed(5), random.seed(5)
    before = evaluator(tiny_model)
    found = torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()
    assert found == expected
    assert [module.training for module in tiny_model.modules()] == flags
    # In train mode dropout would make two calls differ.
    assert evaluator(tiny_model) == before


def test_a_collapsed_model_has_no_correlation(tiny_model, sentences):
    evaluator = ratings_evaluator(sentences[:4], sentences[4:8], [0, 1, 2, 3])
    for parameter in tiny_model.parameters():
        parameter.data.zero_()
    found = evaluator(tiny_model)
    assert found["sts_dev_spearman"] == 0.0
    assert "sts_dev_alignment" not in found  # no pair is rated above 4


def test_sts_b_dev(senteval, tmp_path, says):
    evaluator = sts_b_dev_evaluator(senteval)
    assert len(evaluator.sentences) == 3000
    assert "STS-B dev, 1500" in evaluator.description
    (senteval / "STS/STSBenchmark/sts-dev.csv").unlink()
    with says(DataError):
        sts_b_dev_evaluator(senteval)


def test_bad_rated_pairs(says):
    with says(ValueError):
        ratings_evaluator(["a", "b"], ["c"], [1, 2])
    with says(ValueError):
        ratings_evaluator(["a"], ["c"], [1])


def test_the_trainer_keeps_the_best_checkpoint_by_it(tiny_model, sentences, tmp_path):
    """The names that the trainer makes of the metrics, in a run of two steps."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments, losses

    evaluator = ratings_evaluator(sentences[:9], sentences[9:18], RATINGS)
    args = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=4,
        eval_strategy="steps",
        save_strategy="steps",
        eval_steps=1,
        save_steps=1,
        load_best_model_at_end=True,
        metric_for_best_model=f"eval_{evaluator.primary_metric}",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    data = Dataset.from_dict({"anchor": sentences[:8], "positive": sentences[8:16]})
    loss = losses.MultipleNegativesRankingLoss(tiny_model)
    trainer = SentenceTransformerTrainer(tiny_model, args, train_dataset=data, evaluator=evaluator, loss=loss)
    trainer.train()
    scores = [log["eval_sts_dev_spearman"] for log in trainer.state.log_history if "eval_sts_dev_spearman" in log]
    assert len(scores) == 2
    assert trainer.state.best_metric == max(scores)


def test_damage_is_seeded_and_takes_words_out():
    text = "one two three four five six seven eight nine ten"
    left = DividedText.of(text).without_share(0.4, random.Random(1)).split()
    assert len(left) == 6
    assert [word for word in text.split() if word in left] == left
    assert DividedText.of("a b c d e").without_share(0.01, random.Random(1)).count(" ") == 3


def test_metrics_and_seed_of_sentences(tiny_model, sentences):
    evaluator = sentences_evaluator([*sentences, "too short", sentences[0]], limit=50, seed=4)
    found = evaluator(tiny_model)
    assert set(found) == {f"held_out_{m}" for m in ("separation", "alignment", "uniformity")}
    assert evaluator.primary_metric == "held_out_separation"
    own, copies = evaluator.sentences[:50], evaluator.sentences[50:]
    assert len(set(own)) == len(copies) == 50
    assert "50 held-out sentences" in evaluator.description
    first, second = tiny_model.encode(list(own)), tiny_model.encode(list(copies))
    assert found["held_out_separation"] == pytest.approx(separation_of_each(second, first).mean(), abs=1e-3)
    same = sentences_evaluator([*sentences, "too short"], limit=50, seed=4)
    assert same.sentences == evaluator.sentences
    assert sentences_evaluator(sentences, limit=50, seed=5).sentences[:50] != own


def test_a_collapsed_model_tells_no_sentences_apart(tiny_model, sentences):
    evaluator = sentences_evaluator(sentences[:50])
    good = evaluator(tiny_model)
    with torch.no_grad():
        for parameter in tiny_model.parameters():
            parameter.zero_()
        tiny_model[0].auto_model.encoder.layer[-1].output.LayerNorm.bias.fill_(1.0)  # one vector for every text
    bad = evaluator(tiny_model)
    assert bad["held_out_separation"] == 0.0 < good["held_out_separation"]
    assert bad["held_out_uniformity"] == pytest.approx(0.0, abs=1e-5)


def test_bad_sentences(says):
    with says(ValueError):
        sentences_evaluator(["one two three four five", "alone"])


def test_accuracy_of_a_classifier_that_always_says_the_same(tiny_base):
    encoder = build_encoder(str(tiny_base), pooling="mean", head=False)
    model = with_modules(encoder, [*encoder, PairClassifier(32, 3)]).train()
    with torch.no_grad():
        model[-1].linear.weight.zero_()
        model[-1].linear.bias.copy_(torch.tensor([0.0, 1.0, 0.0]))
    state = torch.get_rng_state()
    assert labels_evaluator(FIRST, SECOND, [1, 1, 0, 1])(model) == {"held_out_accuracy": 75.0}
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)


def test_accuracy_where_the_first_sentence_decides(tiny_base):
    """The sign of the first number of u is the label."""
    encoder = build_encoder(str(tiny_base), pooling="mean", head=False)
    model = with_modules(encoder, [*encoder, PairClassifier(32, 2)]).eval()
    with torch.no_grad():
        model[-1].linear.weight.zero_()
        model[-1].linear.bias.zero_()
        model[-1].linear.weight[1, 0] = 1.0
    labels = [int(vector[0] > 0) for vector in model.encode(FIRST)]
    assert labels_evaluator(FIRST, SECOND, labels)(model)["held_out_accuracy"] == 100
    assert labels_evaluator(FIRST, SECOND, [1 - x for x in labels])(model)["held_out_accuracy"] == 0


def test_bad_labels(tiny_model, says):
    with says(ValueError):
        labels_evaluator(FIRST, SECOND, [1])
    with says(ValueError):
        labels_evaluator(FIRST, SECOND, [1, 1, 1, 1])(tiny_model)


@pytest.fixture
def cross(tiny_base):
    torch.manual_seed(0)
    return CrossEncoder(str(tiny_base), num_labels=1, activation_fn=torch.nn.Identity())


def test_error_of_cosines(tiny_model):
    u, v = (tiny_model.encode(texts).astype(np.float64) for texts in (FIRST, SECOND))
    cosines = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    found = scores_evaluator(FIRST, SECOND, SCORES)(tiny_model)
    assert found["dev_mse"] == pytest.approx(np.mean((cosines - SCORES) ** 2), rel=1e-5)
    assert found["dev_mse_harvest"] == pytest.approx(found["dev_mse"])
    assert found["dev_spearman"] == pytest.approx(100 * spearmanr(cosines, SCORES).statistic)


def test_error_on_the_scale_of_the_scores(tiny_model):
    """Targets of half a score: errors of the scores are twice those of the targets."""
    evaluator = scores_evaluator(
        FIRST, SECOND, SCORES, to_target=lambda x: x / 2, from_target=lambda x: 2 * x, name="test"
    )
    found = evaluator(tiny_model)
    assert found["test_mse_harvest"] == pytest.approx(4 * found["test_mse"])
    assert not evaluator.greater_is_better


def test_a_cross_encoders_own_scores_are_taken(cross):
    expected = cross.predict(list(zip(FIRST, SECOND, strict=True)))
    state = torch.get_rng_state()
    cross.train()
    assert PairPredictions(FIRST, SECOND)(cross) == pytest.approx(expected, abs=1e-6)
    assert cross.training
    assert torch.equal(torch.get_rng_state(), state)


def test_bad_scores(says):
    with says(ValueError):
        scores_evaluator(["a"], ["b"], [1.0])
    with says(ValueError):
        scores_evaluator(["a"], ["b"], [1.0, 2.0])


def test_nearness_by_hand():
    assert nearness(A, B, "euclidean") == pytest.approx([-5.0, -np.sqrt(5)])
    assert nearness(A, B, "manhattan") == pytest.approx([-7.0, -3.0])
    assert nearness(A[1:], np.array([[1.0, 1.0]]), "cosine") == pytest.approx([np.sqrt(0.5)])


def test_a_sentence_is_nearest_to_itself_and_a_tie_is_wrong(tiny_model):
    one, other = "the cat sees the dog", "the old river is quiet"
    evaluator = triplets_evaluator([one, one, one, other], [one, other, one, other], [other, one, one, one])
    # Right, wrong, a tie, right.
    assert evaluator(tiny_model) == {"held_out_accuracy": 50.0}
    assert "4 held-out triplets" in evaluator.description


def test_bad_triplets(says):
    with says(ValueError):
        triplets_evaluator(["a"], [], ["b"])


def test_noise_of_a_change_is_that_of_other_samples():
    """The correlation of n pairs changes by 1 / sqrt(n) or so from sample to sample; a common part cancels out."""
    rng = np.random.default_rng(3)
    gold = rng.normal(size=400)

    evaluator = ratings_evaluator(["a"] * 400, ["b"] * 400, gold)
    shared, other = gold + rng.normal(size=400), gold + rng.normal(size=400)
    # By hand: the spread of the difference over fresh samples of the same distribution.
    changes = []
    for _ in range(300):
        new = rng.normal(size=400)
        scores = [100 * spearmanr(new + rng.normal(size=400), new).statistic for _ in range(2)]
        changes.append(scores[1] - scores[0])
    near = Items(shared + 0.05 * rng.normal(size=400), gold)
    shared, other = Items(shared, gold), Items(other, gold)
    assert evaluator.noise(shared, other) == pytest.approx(1.96 * np.std(changes), rel=0.3)
    assert evaluator.noise(shared, shared) == 0
    assert evaluator.noise(shared, near) < evaluator.noise(shared, other) / 4
    assert evaluator.noise(None, shared) is None


def test_same_vectors_as_encode_and_tokens_made_once(tiny_model, sentences, monkeypatch):
    monkeypatch.setattr(checkpoint, "BATCH", 7)
    texts = [*sentences[:20], sentences[3], sentences[0]]
    cache = TokenCache(texts)
    calls = []
    preprocess = tiny_model.preprocess
    tiny_model.preprocess = lambda *a, **k: calls.append(1) or preprocess(*a, **k)
    rows = cache.vectors(tiny_model)
    again = cache.vectors(tiny_model)
    assert len(calls) == 3  # 20 unique sentences in batches of 7
    np.testing.assert_allclose(rows, tiny_model.encode(texts), atol=1e-5)
    np.testing.assert_array_equal(rows, again)
    # A shorter limit asks for other tokens.
    tiny_model.max_seq_length = 6
    short = cache.vectors(tiny_model)
    np.testing.assert_allclose(short, tiny_model.encode(texts), atol=1e-5)
    assert not np.allclose(short, rows)


def test_prompt_and_shortened_vectors(tiny_model, sentences):
    tiny_model.prompts = {"x": "the old cat "}
    tiny_model.default_prompt_name = "x"
    tiny_model.truncate_dim = 8
    rows = TokenCache(sentences[:5]).vectors(tiny_model)
    assert rows.shape == (5, 8)
    np.testing.assert_allclose(rows, tiny_model.encode(sentences[:5]), atol=1e-5)
