import pytest
import torch


@pytest.fixture
def encoders(tiny_model, tiny_base):
    """One of each kind of encoder that likewise makes, as plain SentenceTransformers."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling

    from likewise.encoder.build import build_prompt_encoder
    from likewise.encoder.text_cnn import TextCNN
    from likewise.encoder.word_vectors import WordVectors, word_tokenizer

    torch.manual_seed(1)
    words = sorted("the cat dog old small sees river near teacher and . likes bridge".split())
    vectors = torch.randn(len(words) + 2, 6) / 8  # sums over a long text stay near 1
    vectors[0] = 0
    word_vectors = WordVectors(word_tokenizer(words, lower=True), vectors)
    whitening = Dense(32, 8, bias=True, activation_function=torch.nn.Identity())
    return {
        "cls": tiny_model,
        "mean": SentenceTransformer(modules=[tiny_model[0], Pooling(32, "mean"), Normalize()], device="cpu"),
        "last token": SentenceTransformer(modules=[tiny_model[0], Pooling(32, "lasttoken")], device="cpu"),
        "whitening": SentenceTransformer(modules=[tiny_model[0], Pooling(32, "mean"), whitening], device="cpu"),
        "mask prompt": build_prompt_encoder(str(tiny_base), head=False).eval(),
        "text cnn": SentenceTransformer(
            modules=[word_vectors, TextCNN(6, (1, 4, 9), 5)],
            device="cpu",
        ).eval(),
    }


@pytest.fixture
def loaded(tiny_model, tmp_path):
    """The tiny encoder, saved and loaded by likewise."""
    from likewise.inference import load

    tiny_model.save(str(tmp_path / "model"), create_model_card=False)
    return load(tmp_path / "model", device="cpu", precision="fp32")


@pytest.fixture
def texts(sentences):
    """60 texts of very different length, some twice, one empty."""
    long = " and ".join(sentences[:30])
    found = [*sentences[:40], "", long, *sentences[5:15], "A cat.", *sentences[40:47]]
    assert len(found) == 60
    return found
