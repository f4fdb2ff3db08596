"""Other libraries: the examples of docs/guides/libraries.md as they stand, and folders of ours in their hands.

A library that is not installed is skipped.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import likewise
from likewise.searching import Index

PAGE = Path(__file__).parents[1] / "docs/guides/libraries.md"


@pytest.fixture
def example(indexed, tmp_path, monkeypatch):
    """A function that runs the one block of Python on the page that holds a text, beside the index that it names."""
    shutil.copytree(indexed, tmp_path / "my.index")
    monkeypatch.chdir(tmp_path)

    def run(wanted: str) -> dict[str, Any]:
        blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        (found,) = [block for block in blocks if wanted in block]
        names: dict[str, Any] = {"__name__": "example"}
        exec(found, names)
        return names

    return run


def test_the_retriever_for_langchain_gives_what_search_gives(example, sentences):
    pytest.importorskip("langchain_core", reason="langchain-core is not installed: pip install langchain-core")
    retriever = example("langchain_core.retrievers")["IndexRetriever"](index=Index("my.index"), k=3)
    found, hits = retriever.invoke(sentences[7]), Index("my.index").search(sentences[7], 3)
    assert [one.page_content for one in found] == [hit.text for hit in hits]
    assert [one.metadata["score"] for one in found] == pytest.approx([hit.score for hit in hits])
    assert [one.metadata["source"] for one in found] == [hit.place for hit in hits]
    # And as a step of a chain.
    assert [len(one) for one in retriever.batch([sentences[7], sentences[9]])] == [3, 3]


def test_the_retriever_for_llama_index_gives_what_search_gives(example, sentences):
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed: pip install llama-index-core")
    retriever = example("llama_index.core.retrievers")["IndexRetriever"](Index("my.index"), k=3)
    found, hits = retriever.retrieve(sentences[7]), Index("my.index").search(sentences[7], 3)
    assert [one.text for one in found] == [hit.text for hit in hits]
    assert [one.score for one in found] == pytest.approx([hit.score for hit in hits])
    assert [one.metadata["source"] for one in found] == [hit.place for hit in hits]


def test_the_retriever_for_haystack_gives_what_search_gives_and_is_saved_with_its_pipeline(example, sentences):
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed: pip install haystack-ai")
    names = example("from haystack import Document, Pipeline")
    pipeline = haystack.Pipeline()
    pipeline.add_component("retriever", names["IndexRetriever"]("my.index", top_k=3))
    saved = haystack.Pipeline.loads(pipeline.dumps(), allowed_modules=["example"])
    for one in (pipeline, saved):
        found = one.run({"retriever": {"query": sentences[7]}})["retriever"]["documents"]
        hits = Index("my.index").search(sentences[7], 3)
        assert [document.content for document in found] == [hit.text for hit in hits]
        assert [document.score for document in found] == pytest.approx([hit.score for hit in hits])
        assert [document.meta["source"] for document in found] == [hit.place for hit in hits]


@pytest.fixture(scope="module", params=["arccse", "sncse"])
def trained(request, tiny_base, sentences, tmp_path_factory):
    """The folder of an encoder that was trained for two updates."""
    options = {"max_steps": 2, "batch_size": 8, "select_by": "last", "precision": "fp32", "quiet": True}
    options |= {"negation": "none"} if request.param == "sncse" else {}
    out = tmp_path_factory.mktemp("trained") / request.param
    likewise.train(request.param, sentences[:40], base=tiny_base, out=out, **options)
    return out


def test_langchain_loads_a_trained_folder(trained, sentences):
    library = pytest.importorskip("langchain_huggingface", reason="langchain-huggingface is not installed")
    embeddings = library.HuggingFaceEmbeddings(model_name=str(trained), model_kwargs={"device": "cpu"})
    wanted = likewise.load(trained, device="cpu", precision="fp32").encode(sentences[:3])
    np.testing.assert_allclose(embeddings.embed_documents(sentences[:3]), wanted, atol=1e-5)
    np.testing.assert_allclose(embeddings.embed_query(sentences[0]), wanted[0], atol=1e-5)


def test_haystack_loads_a_trained_folder(trained, sentences):
    name = "haystack_integrations.components.embedders.sentence_transformers"
    library = pytest.importorskip(name, reason="sentence-transformers-haystack is not installed")
    device = pytest.importorskip("haystack.utils").ComponentDevice.from_str("cpu")
    embedder = library.SentenceTransformersTextEmbedder(model=str(trained), device=device, progress_bar=False)
    embedder.warm_up()
    wanted = likewise.load(trained, device="cpu", precision="fp32").encode(sentences[0])
    np.testing.assert_allclose(embedder.run(sentences[0])["embedding"], wanted, atol=1e-5)


def test_a_trained_folder_has_what_an_embedding_server_reads(trained):
    """Text-embeddings-inference reads no Python: it wants these files, and each module's type from modules.json."""
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", "modules.json"):
        assert (trained / name).is_file(), name
    modules = json.loads((trained / "modules.json").read_text(encoding="utf-8"))
    assert modules[0]["type"].endswith(".Transformer")
    for module in modules[1:]:
        assert (trained / module["path"] / "config.json").is_file()
        assert module["type"].startswith("sentence_transformers."), "no code of ours"
    assert json.loads((trained / "config.json").read_text())["architectures"]
