"""A base that is a sentence encoder is trained, scored and saved as it is shipped."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

import likewise
from likewise.encoder.build import build_encoder
from likewise.encoder.saved_models import is_sentence_encoder
from likewise.recipes import OptionError, find_recipe

SMALL = {"batch_size": 8, "max_steps": 2, "quiet": True, "precision": "fp32"}


@pytest.fixture
def shipped(tiny_base, tmp_path):
    """A sentence encoder with mean pooling and vectors of length 1."""
    transformer = Transformer(str(tiny_base))
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")
    folder = tmp_path / "shipped"
    SentenceTransformer(modules=[transformer, pooling, Normalize()]).save(str(folder))
    return folder


def test_the_base_keeps_its_modules_and_its_vectors(shipped, tiny_base, sentences):
    found = build_encoder(str(shipped), pooling="own", head=True, dropout=0.1).eval()
    assert [type(module).__name__ for module in found] == ["Transformer", "Pooling", "TrainingHead", "Normalize"]
    expected = SentenceTransformer(str(shipped)).encode(sentences[:5])
    np.testing.assert_allclose(found.encode(sentences[:5]), expected, atol=1e-6)
    assert is_sentence_encoder(str(shipped))
    assert not is_sentence_encoder(str(tiny_base))
    dropouts = {module.p for module in found.modules() if isinstance(module, torch.nn.Dropout)}
    assert dropouts == {0.1}


def test_a_raw_language_model_has_cls_and_the_head(tiny_base):
    found = build_encoder(str(tiny_base), pooling="own", head=True)
    assert [type(module).__name__ for module in found] == ["Transformer", "Pooling", "TrainingHead"]
    assert found[1].pooling_mode == "cls"


@pytest.mark.parametrize("recipe", ["arccse", "simcse", "esimcse"])
def test_it_is_the_default_of_the_first_preset_alone(recipe):
    pooling = {name: options.pooling for name, options in find_recipe(recipe).presets.items()}
    at_prompt = {} if recipe == "esimcse" else {"language-model": "prompt"}
    assert pooling == {"cpu": "own", "paper-base": "cls", "paper-large": "cls"} | at_prompt


def test_a_trained_folder_is_of_the_same_modules(shipped, corpus_file, tmp_path):
    result = likewise.train("simcse", corpus_file, base=str(shipped), out=tmp_path / "out", select_by="last", **SMALL)
    model = SentenceTransformer(str(result.path))
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling", "Normalize"]
    assert model[1].pooling_mode == "mean"


@pytest.mark.parametrize("included", [True, False])
@pytest.mark.parametrize("recipe", ["arccse", "mask-distillation"])
def test_a_default_prompt_is_in_training_what_it_is_in_encode(tiny_base, tmp_path, recipe, included):
    transformer = Transformer(str(tiny_base))
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="mean", include_prompt=included)
    model = SentenceTransformer(
        modules=[transformer, pooling, Normalize()], prompts={"q": "the cat sees "}, default_prompt_name="q"
    )
    model.save(str(tmp_path / "prompted"))
    method = find_recipe(recipe)
    options = method.options()
    encoder = method.build_encoder(str(tmp_path / "prompted"), options)
    rows = [{"sentence": text, "words": 3} for text in ("the old river", "a dog")]
    batch = method.build_collator(encoder, options, 1)(rows)
    column, reader = ("plain", encoder[-1].encoder) if recipe == "mask-distillation" else ("sentence", encoder)
    features = {name[len(column) + 1 :]: value for name, value in batch.items() if name.startswith(column)}
    found = reader.eval()(features)["sentence_embedding"].detach().numpy()
    np.testing.assert_allclose(found, model.encode([row["sentence"] for row in rows]), atol=1e-6)


@pytest.mark.parametrize("pooling", ["own", "cls"])
def test_before_is_the_score_of_the_base_as_it_is_shipped(shipped, corpus_file, tmp_path, pooling):
    from likewise.training.selection import choose_selection

    scored = []

    def watched(*arguments, **settings):
        selection = choose_selection(*arguments, **settings)
        scored.append(selection.evaluator)
        return selection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likewise.training.train.choose_selection", watched)
        result = likewise.train(
            "simcse",
            corpus_file,
            base=str(shipped),
            out=tmp_path / "out",
            pooling=pooling,
            select_by="held-out",
            **SMALL,
        )
    expected = scored[0](SentenceTransformer(str(shipped)))
    (metric,) = [name for name in result.before if name == result.best["metric"]]
    assert result.before[metric] == pytest.approx(float(expected[metric]), abs=1e-5)


def test_a_base_that_reads_the_mask_of_a_prompt_keeps_it_and_takes_no_masked_words(
    tiny_base, corpus_file, tmp_path, says
):
    settings = SMALL | {"select_by": "last"}
    masked = likewise.train("mask-distillation", corpus_file, base=str(tiny_base), out=tmp_path / "mask", **settings)
    again = {"base": str(masked.path), "out": tmp_path / "out", **settings}
    with says(OptionError):
        likewise.train("arccse", corpus_file, **again)
    assert not (tmp_path / "out").exists()
    likewise.train("arccse", corpus_file, **again, triplet_weight=0.0)
    before, after = (SentenceTransformer(str(tmp_path / name)) for name in ("mask", "out"))
    assert [type(module) for module in after] == [type(module) for module in before]
    assert after.tokenizer("a river")["input_ids"] == before.tokenizer("a river")["input_ids"]
    assert torch.equal(after[1].emb_layer.weight, before[1].emb_layer.weight)
    assert not np.allclose(after.encode("a river"), before.encode("a river"), atol=1e-6)
