"""A model of likewise in mteb, on a task object that needs no hub."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

import likewise

FIRST = ["the cat sees the dog", "a house by the river", "the bird sings", "the king visits the town", "a red garden"]
SECOND = [
    "the dog sees the cat",
    "the old king",
    "the bird does not sing",
    "the king sees the town",
    "the river is red",
]
RATINGS = [4.0, 0.5, 2.0, 4.5, 1.0]


@pytest.fixture
def mteb():
    return pytest.importorskip("mteb")


@pytest.fixture
def task(mteb):
    from datasets import Dataset, DatasetDict
    from mteb.abstasks import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    class LocalPairs(AbsTaskSTS):
        metadata = TaskMetadata(
            name="LocalPairs",
            description="Rated pairs that the test brings.",
            dataset={"path": "local/pairs", "revision": "1"},
            type="STS",
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="cosine_spearman",
        )

        def load_data(self, *args, **kwargs):
            rows = Dataset.from_dict({"sentence1": FIRST, "sentence2": SECOND, "score": RATINGS})
            self.dataset, self.data_loaded = DatasetDict(test=rows), True

    return LocalPairs()


@pytest.fixture
def model_folder(tiny_model, tmp_path):
    """A mean of random word vectors: its cosines differ by far more than rounding, unlike those of the tiny BERT."""
    vectors = np.random.default_rng(0).standard_normal((len(tiny_model.tokenizer), 16))
    words = StaticEmbedding(tiny_model.tokenizer, embedding_weights=vectors.astype(np.float32))
    SentenceTransformer(modules=[words]).save(str(tmp_path / "model"), create_model_card=False)
    return str(tmp_path / "model")


def test_mteb_scores_a_loaded_model_as_scipy_does_its_cosines(model_folder, task, mteb):
    model = likewise.load(model_folder, precision="fp32")
    (found,) = mteb.evaluate(model, [task], cache=None, show_progress_bar=False).task_results
    first, second = (model.encode(texts, normalize_embeddings=True) for texts in (FIRST, SECOND))
    expected = spearmanr(np.sum(first * second, axis=1), RATINGS).statistic
    assert found.get_score() == pytest.approx(expected, abs=1e-6)
