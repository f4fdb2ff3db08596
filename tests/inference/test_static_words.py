import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, StaticEmbedding

from likewise.inference import export, load
from likewise.inference.engines.engine import CannotExport


@pytest.fixture
def static(tiny_model):
    torch.manual_seed(0)
    words = StaticEmbedding(tiny_model.tokenizer, embedding_dim=6)
    return SentenceTransformer(modules=[words, Normalize()], device="cpu")


def test_many_texts_have_the_vectors_of_sentence_transformers(static, sentences, tmp_path):
    static.save(str(tmp_path / "model"), create_model_card=False)
    model = load(tmp_path / "model", device="cpu")
    texts = [*sentences, "", "\N{SNOWMAN}", sentences[0]] * 3  # more than a batch
    found = model.encode(texts)
    assert model.last_engine is None
    assert np.allclose(found, static.encode(texts), atol=1e-6)
    prompted = model.encode(texts[:50], prompt="the dog ", batch_size=7)
    assert np.allclose(prompted, static.encode(texts[:50], prompt="the dog "), atol=1e-6)


def test_model2vec_reads_the_export(static, sentences, tmp_path):
    model2vec = pytest.importorskip("model2vec", reason="not installed: pip install model2vec")
    files = export(static, "model2vec", tmp_path / "out")
    assert {path.name for path in files} == {"model.safetensors", "tokenizer.json", "config.json"}
    assert json.loads((tmp_path / "out" / "config.json").read_text())["normalize"] is True
    theirs = model2vec.StaticModel.from_pretrained(tmp_path / "out")
    long = " ".join(sentences)
    assert np.allclose(
        theirs.encode([*sentences[:20], long], max_length=None), static.encode([*sentences[:20], long]), atol=1e-5
    )


def test_what_is_more_than_a_mean_of_words_is_refused(static, tiny_model, tmp_path, says):
    for model in (SentenceTransformer(modules=[static[0], Dense(6, 6)]), tiny_model):
        with says(CannotExport):
            export(model, "model2vec", tmp_path / "out")
