import random
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def word_model(tmp_path_factory) -> Path:
    """An encoder that adds the random vectors of words: unlike the tiny encoder's, its vectors differ much."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, normalizers
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = "the near in behind above beside old small green quiet bright heavy famous narrow sees paints follows "
    words += "remembers crosses builds visits likes carries watches cat dog river bridge teacher letter garden train "
    words += "window song market doctor island captain farmer zebra"
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(["[UNK]", *words.split()])}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), Whitespace()
    weights = np.random.default_rng(0).normal(size=(len(words.split()) + 1, 16)).astype(np.float32)
    folder = tmp_path_factory.mktemp("words") / "model"
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)])
    model.save(str(folder), create_model_card=False)
    return folder


@pytest.fixture(scope="session")
def many(sentences, word_model, tmp_path_factory) -> Path:
    """The index of 300 sentences, a line each, by `word_model`."""
    from likewise.searching import index

    folder = tmp_path_factory.mktemp("many")
    (folder / "lines.txt").write_text("\n".join(random.Random(1).sample(sentences, 300)) + "\n")
    weights = {"vectors": 1, "words": 1, "neighbours": 0.3, "nearest": 5}
    index(folder / "lines.txt", model=word_model, out=folder / "many.index", pipeline=weights, quiet=True)
    return folder / "many.index"
