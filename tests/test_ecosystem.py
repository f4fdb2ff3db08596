"""The examples of docs/guides/libraries.md run as they stand, where their libraries are installed."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

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
