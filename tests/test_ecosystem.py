"""The examples for other libraries in docs/ecosystem.md run as they stand, where these libraries are installed."""

import re
import shutil
from pathlib import Path

import pytest

from likewise.searching import Index

PAGE = Path(__file__).parents[1] / "docs/ecosystem.md"


def example(wanted: str) -> str:
    """Return the one block of Python on the page that holds a text."""
    (found,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if wanted in block]
    return found


def test_the_retriever_for_langchain_gives_what_search_gives(indexed, sentences, tmp_path, monkeypatch):
    pytest.importorskip("langchain_core", reason="langchain-core is not installed: pip install langchain-core")
    shutil.copytree(indexed, tmp_path / "my.index")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(example("class IndexRetriever"), names)
    retriever = names["IndexRetriever"](index=Index("my.index"), k=3)
    found = retriever.invoke(sentences[7])
    hits = Index("my.index").search(sentences[7], 3)
    assert [one.page_content for one in found] == [hit.text for hit in hits]
    assert [one.metadata["score"] for one in found] == pytest.approx([hit.score for hit in hits])
    assert [one.metadata["source"] for one in found] == [hit.place for hit in hits]
    # And as a step of a chain.
    assert [len(one) for one in retriever.batch([sentences[7], sentences[9]])] == [3, 3]
