import random

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr, spearmanr

from likewise.evaluation.geometry import alignment, uniformity
from likewise.evaluation.sts_dev import StsDevEvaluator
from likewise.evaluation.tasks import DataError

RATINGS = [0, 1, 2, 3, 4, 0, 1, 2, 3]


def test_metrics(tiny_model, sentences):
    first, second = sentences[:30], sentences[20:50]
    ratings = [random.Random(i).randint(0, 20) / 4 for i in range(30)]
    found = StsDevEvaluator(first, second, ratings, batch_size=8)(tiny_model)
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
    evaluator = StsDevEvaluator(sentences[:9], sentences[9:18], RATINGS)
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


def test_a_collapsed_model_is_the_worst(tiny_model, sentences):
    evaluator = StsDevEvaluator(sentences[:4], sentences[4:8], [0, 1, 2, 3])
    for parameter in tiny_model.parameters():
        parameter.data.zero_()
    found = evaluator(tiny_model)
    assert found["sts_dev_spearman"] == 0.0
    assert "sts_dev_alignment" not in found  # no pair is rated above 4


def test_bf16(tiny_model, sentences):
    found = StsDevEvaluator(sentences[:9], sentences[9:18], RATINGS, precision="bf16")(tiny_model)
    assert all(np.isfinite(value) for value in found.values())


def test_from_data(senteval, tmp_path):
    evaluator = StsDevEvaluator.from_data(senteval)
    assert len(evaluator.gold) == 1500
    assert "STS-B dev, 1500" in evaluator.description
    (senteval / "STS/STSBenchmark/sts-dev.csv").unlink()
    with pytest.raises(DataError, match=r"sts-dev\.csv"):
        StsDevEvaluator.from_data(senteval)


def test_bad_pairs():
    with pytest.raises(ValueError, match="2 first sentences, 1 second"):
        StsDevEvaluator(["a", "b"], ["c"], [1, 2])
    with pytest.raises(ValueError, match="two rated pairs"):
        StsDevEvaluator(["a"], ["c"], [1])


def test_the_trainer_keeps_the_best_checkpoint_by_it(tiny_model, sentences, tmp_path):
    """The names that the trainer makes of the metrics, in a run of two steps."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments, losses

    evaluator = StsDevEvaluator(sentences[:9], sentences[9:18], RATINGS)
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
