"""What a model carries besides its weights: prompts, routes, dimensions, the tokenizer's settings, types."""

import json
import sys

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, StaticEmbedding
from tokenizers.normalizers import Replace, Sequence

import likewise
from likewise.encoder.location import LoadError
from likewise.inference import export, load, similarity
from likewise.inference.engines.engine import CannotExport
from likewise.inference.handle import ModelHandle
from likewise.inference.load_model import base_name
from likewise.runs.job import JobError

PROMPTS = {"query": "the old ", "document": "a quiet "}


@pytest.fixture
def save(tiny_model, tmp_path):
    """Saves a model of the tiny transformer, a mean and more modules, and returns its folder."""

    def saved(*more, name="model", include_prompt=True, **settings):
        pooling = Pooling(32, "mean", include_prompt=include_prompt)
        model = SentenceTransformer(modules=[tiny_model[0], pooling, *more], device="cpu", **settings)
        model.save(str(tmp_path / name), create_model_card=False)
        return tmp_path / name

    return saved


def plain(folder):
    return SentenceTransformer(str(folder), device="cpu")


def routed():
    torch.manual_seed(1)
    return Router.for_query_document(
        query_modules=[Dense(32, 8)], document_modules=[Dense(32, 8)], default_route="document"
    )


def test_queries_and_documents_take_their_routes(save, sentences):
    folder = save(routed(), prompts=PROMPTS)
    wanted, model = plain(folder), load(folder, device="cpu", precision="fp32")
    for method in ("encode_query", "encode_document", "encode"):
        found = getattr(model, method)(sentences[:40])
        np.testing.assert_allclose(found, getattr(wanted, method)(sentences[:40]), atol=1e-5)
    assert not np.allclose(model.encode_query(sentences[:3]), model.encode_document(sentences[:3]), atol=0.01)


@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16])
def test_tensors_are_of_the_type_of_the_weights(weights, save, sentences, monkeypatch, tmp_path):
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "bf16")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    model = load(save(Dense(32, 16)), device="cpu").to(weights)
    for texts in (sentences[:300], sentences[0], sentences[:3], sentences[:40]):
        assert model.encode(texts, convert_to_tensor=True).dtype == weights


def test_cosines_with_arrays_and_columns(saved_model, sentences):
    pandas = pytest.importorskip("pandas")
    wanted = similarity(sentences[:2], sentences[2:5], model=saved_model)
    others = (np.array(sentences[2:5]), pandas.Series(sentences[2:5], index=[4, 9, 1]), tuple(sentences[2:5]))
    for kind in others:
        np.testing.assert_allclose(similarity(np.array(sentences[:2]), kind, model=saved_model), wanted)


def test_the_side_of_truncation_is_seen_after_a_first_call(save):
    model, wanted = load(save(), precision="fp32"), plain(save())
    text = "the cat " * 200 + "the dog " * 100
    np.testing.assert_allclose(model.encode(text), wanted.encode(text), atol=1e-5)
    before = model.encode(text)
    model.tokenizer.truncation_side = wanted.tokenizer.truncation_side = "left"
    np.testing.assert_allclose(model.encode(text), wanted.encode(text), atol=1e-5)
    assert np.abs(model.encode(text) - before).max() > 1e-3


def test_a_normaliser_that_is_changed_is_seen_after_a_first_call(save):
    model = load(save(), precision="fp32")
    wanted = model.encode("the dog sees")
    tokenizer = model.tokenizer.backend_tokenizer
    assert not np.allclose(model.encode("the cat sees"), wanted, atol=1e-3)
    tokenizer.normalizer = Sequence([Replace("cat", "dog"), tokenizer.normalizer])
    np.testing.assert_allclose(model.encode("the cat sees"), wanted, atol=1e-5)


@pytest.mark.parametrize("kind", ["similarity", "truncation", "prompt", "dimension"])
def test_a_base_keeps_what_was_changed_after_it_was_loaded(kind, save):
    folder = save()
    model = plain(folder)
    assert base_name(model) == str(folder)
    if kind == "similarity":
        model.similarity_fn_name = "dot"
    elif kind == "truncation":
        model.tokenizer.truncation_side = "left"
    elif kind == "prompt":
        model.prompts["query"] = "the old "
    else:
        model.truncate_dim = 8
    kept = plain(base_name(model))
    assert base_name(model) != str(folder)
    text = "the cat " * 200 + "a dog"
    np.testing.assert_allclose(kept.encode_query(text), model.encode_query(text), atol=1e-5)
    assert kept.similarity_fn_name == model.similarity_fn_name


def test_a_base_whose_tokenizer_a_folder_does_not_keep_is_refused(save, says):
    model = plain(save())
    tokenizer = model.tokenizer.backend_tokenizer
    tokenizer.normalizer = Sequence([Replace("cat", "dog"), tokenizer.normalizer])
    with says(LoadError):
        base_name(model)


def test_an_export_is_not_taken_for_one_of_changed_settings(save, tmp_path, says):
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'likewise[onnx]'")
    folder, out = save(Normalize(), prompts=PROMPTS, default_prompt_name="query"), tmp_path / "out"
    export(folder, "onnx", out)
    assert export(folder, "onnx", out)  # is there already
    file = folder / "config_sentence_transformers.json"
    before = json.loads(file.read_text())
    for name, value in [("prompts", {"query": "find "}), ("truncate_dim", 8), ("similarity_fn_name", "dot")]:
        file.write_text(json.dumps(before | {name: value}))
        with says(JobError):
            export(folder, "onnx", out)
    export(folder, "onnx", out, overwrite=True)
    about = json.loads((out / "likewise_export.json").read_text())
    assert (about["prompt"], about["prompts"], about["similarity"]) == ("the old ", PROMPTS, "dot")


def test_what_a_graph_cannot_hold_is_refused_by_name(save, tmp_path, says):
    with says(CannotExport):
        export(save(routed()), "onnx", tmp_path / "out")
    with says(CannotExport):
        export(save(prompts=PROMPTS, include_prompt=False), "onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_word_vectors_for_model2vec_are_the_models_or_refused(word_model, tmp_path, says):
    static = pytest.importorskip("model2vec").StaticModel
    words = StaticEmbedding.load(str(word_model))
    cut = SentenceTransformer(modules=[words], device="cpu", truncate_dim=5)
    export(cut, "model2vec", tmp_path / "cut")
    found = static.from_pretrained(str(tmp_path / "cut")).encode(["the old dog"])
    np.testing.assert_allclose(found, cut.encode(["the old dog"]), atol=1e-5)
    prompted = SentenceTransformer(modules=[words], device="cpu", prompts=PROMPTS, default_prompt_name="query")
    with says(CannotExport):
        export(prompted, "model2vec", tmp_path / "prompted")
    scaled = SentenceTransformer(modules=[words, Normalize()], device="cpu", truncate_dim=5)
    with says(CannotExport):
        export(scaled, "model2vec", tmp_path / "scaled")


def test_an_adapter_without_peft_says_what_to_install(save, monkeypatch, says):
    monkeypatch.setitem(sys.modules, "peft", None)
    monkeypatch.setattr("sentence_transformers.base.modules.transformer.is_peft_available", lambda: False)
    folder = save()
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "x"}')
    with says(LoadError):
        load(folder)


@pytest.mark.parametrize("kind", ["routes behind the pooling", "routes before it", "prompt left out of the pooling"])
def test_a_job_encodes_queries_and_documents_as_sentence_transformers(kind, tiny_model, save, sentences):
    if kind == "routes before it":
        torch.manual_seed(2)
        parts = [[tiny_model[0], Pooling(32, "mean"), *more] for more in ([Dense(32, 32)], [])]
        router = Router.for_query_document(query_modules=parts[0], document_modules=parts[1])
        folder = save(name="unused").parent / "routed"
        routed_first = SentenceTransformer(modules=[router, Normalize()], device="cpu", prompts=PROMPTS)
        routed_first.save(str(folder), create_model_card=False)
    elif kind == "routes behind the pooling":
        folder = save(routed(), prompts=PROMPTS)
    else:
        folder = save(prompts=PROMPTS, default_prompt_name="document", include_prompt=False)
    wanted, handle = plain(folder), ModelHandle(folder)
    queries, documents = (
        getattr(wanted, f"encode_{role}")(sentences[:9], normalize_embeddings=True) for role in ("query", "document")
    )
    np.testing.assert_allclose(handle.opened("query", sentences)(sentences[:9]), queries, atol=1e-5)
    np.testing.assert_allclose(handle.opened("document", sentences)(sentences[:9]), documents, atol=1e-5)
    assert not np.allclose(queries, documents, atol=2e-5)
    # As a service does it: one encoder, and the side with each request; both may share a batch.
    encoder, facts = handle.opened(None, sentences), handle.facts
    items = encoder.items(sentences[:9], facts.side("query")) + encoder.items(sentences[:9], facts.side("document"))
    np.testing.assert_allclose(encoder.vectors(items), np.concatenate([queries, documents]), atol=1e-5)


def test_it_is_said_where_a_model_with_another_similarity_is_compared_by_the_cosine(save, tmp_path, capsys):
    makers = (
        lambda: save(similarity_fn_name="dot"),
        lambda: save(Normalize(), similarity_fn_name="dot"),
        save,
    )
    told = []
    for made in makers:
        folder = made()
        likewise.index(["the cat sees", "a dog"], model=folder, out=tmp_path / f"{len(told)}.index")
        told.append(capsys.readouterr().err.count("'dot'"))
    assert told == [1, 0, 0]
