import json
import subprocess
import sys

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import likewise
from likewise.errors import LikewiseError
from likewise.searching import Index, SearchError


@pytest.fixture(scope="module")
def reader(_indexed):
    return Index(_indexed)


def test_vectors_are_ranked_by_the_cosine(reader, sentences, saved_model):
    query = "the old dog near the river"
    model = SentenceTransformer(str(saved_model))
    rows = model.encode([query, *sentences[:40]], normalize_embeddings=True)
    cosines = dict(zip(sentences[:40], (rows[1:] @ rows[0]).tolist(), strict=True))
    hits = [hit for hit in reader.search(query, 42, mode="vectors") if hit.file.endswith("lines.txt")]
    assert {hit.text for hit in hits} == set(cosines)
    assert [hit.score for hit in hits] == pytest.approx([cosines[hit.text] for hit in hits], abs=1e-5)
    assert [hit.score for hit in hits] == pytest.approx(sorted(cosines.values(), reverse=True), abs=1e-5)
    assert all(hit.words is None for hit in hits)


def test_words_find_what_holds_them_also_by_their_stem_and_in_the_heading(reader, sentences):
    hits = reader.search("dogs", 100, mode="words")
    wanted = {text for text in sentences[:40] if "dog" in text.split()} | {sentences[42]}
    assert {hit.text for hit in hits} >= wanted
    assert all("dog" in f"{hit.title} {hit.text}".lower() for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert reader.search("zebra", mode="words") == []


@pytest.mark.parametrize(("engine", "package"), [("onnx", "onnxruntime"), ("openvino", "openvino")])
def test_a_search_with_an_export_does_without_torch(
    engine, package, saved_model, reader, sentences, tmp_path, monkeypatch
):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'likewise[{engine}]'")
    likewise.load(saved_model, engine=engine, precision="fp32").encode(sentences[:40])
    query = "the old dog near the river"
    code = f"""
import json, sys
from likewise.searching import Index
hits = Index({str(reader.path)!r}).search({query!r})
print(json.dumps(['torch' in sys.modules, [[hit.text, hit.sentence, hit.similarity] for hit in hits]]))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    torch, hits = json.loads(found.stdout)
    wanted = Index(reader.path, saved_model).search(query)
    assert not torch
    assert [hit[:2] for hit in hits] == [[hit.text, hit.sentence] for hit in wanted]
    assert [hit[2] for hit in hits] == pytest.approx([hit.similarity for hit in wanted], abs=1e-5)


@pytest.mark.parametrize("mode", ["hybrid", "vectors", "words"])
def test_half_of_a_character_is_a_question_mark(reader, mode):
    assert reader.search("the river \udcff", mode=mode) == reader.search("the river ?", mode=mode) != []


def test_the_sentence_that_fits_is_marked(reader, sentences, saved_model):
    hit = next(hit for hit in reader.search(sentences[41], mode="vectors", k=42) if hit.title == "Rivers")
    model = SentenceTransformer(str(saved_model))
    rows = model.encode([sentences[41], sentences[40], sentences[41]], normalize_embeddings=True)
    assert rows[0] @ rows[2] > rows[0] @ rows[1]
    assert hit.sentence == sentences[41]
    assert hit.parts == (f"{sentences[40]} ", sentences[41], "")


def test_sentences_of_the_same_hits_are_encoded_once(indexed, sentences, monkeypatch):
    reader, encoded = Index(indexed), []
    encode = reader.encoder.encode
    monkeypatch.setattr(
        reader.encoder, "encode", lambda opened, texts: (encoded.extend(texts), encode(opened, texts))[1]
    )
    first = reader.search(sentences[41], k=42)
    assert sentences[40] in encoded
    encoded.clear()
    again = reader.search(sentences[41], k=42)
    assert sentences[40] not in encoded
    assert [hit.sentence for hit in again] == [hit.sentence for hit in first]


def test_filters_on_places_and_metadata(saved_model, tmp_path, says):
    rows = [{"body": f"the cat number {i}", "year": str(2000 + i), "kind": "a" if i % 2 else "b"} for i in range(8)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    likewise.index(
        tmp_path / "rows.jsonl",
        model=saved_model,
        out=tmp_path / "rows.index",
        corpus_options=likewise.CorpusOptions(field="body"),
        metadata=["year", "kind"],
        quiet=True,
    )
    reader = Index(tmp_path / "rows.index")
    for mode in ("hybrid", "vectors", "words"):
        hits = reader.search("the cat", mode=mode, where="year >= '2004' AND kind = 'a'")
        assert {hit.line for hit in hits} == {6, 8}
        assert {hit.metadata["year"] for hit in hits} == {"2005", "2007"}
    with says(SearchError):
        reader.search("the cat", where="yeer = 1")
    with says(SearchError):
        reader.search("the cat", where="line = = 2", mode="words")


@pytest.mark.parametrize("query", ["'; DROP TABLE x", 'a AND (b:"', "\0\u202e", "*" * 5000, "\U0001f600", "-"])
def test_no_query_is_a_fault(reader, query):
    assert isinstance(reader.search(query, 3), list)


def test_wrong_arguments_are_refused_and_an_empty_query_finds_nothing(reader, indexed, says):
    assert reader.search("  ") == []
    with says(SearchError):
        reader.search("a", 0)
    with says(LikewiseError):
        reader.search("a", "5")
    with says(TypeError):
        likewise.search(indexed, "a", wher="line > 1")
    with says(SearchError):
        likewise.search(indexed, "a", vectors_only=True, words_only=True)


def test_hits_are_plain_values_for_json(reader):
    hit = reader.search("the cat", 1)[0]
    plain = json.loads(json.dumps(hit.to_dict()))
    assert plain["file"] == hit.file
    assert set(plain) == {
        "score", "file", "line", "title", "text", "sentence", "similarity", "words", "metadata", "scores", "id", "also",
    }  # fmt: skip
    assert np.isfinite(plain["score"])


def test_an_index_is_not_searched_by_an_encoder_that_has_changed(saved_model, sentences, tmp_path, monkeypatch, says):
    monkeypatch.setenv("LIKEWISE_EXPORTS", "never")
    model = likewise.load(saved_model, precision="fp32")
    model.prompts["query"] = "the old "
    made = likewise.index(sentences[:20], model=model, out=tmp_path / "index", quiet=True)
    assert made.search("the cat")
    with says(SearchError):
        Index(tmp_path / "index").search("the cat")
    assert Index(tmp_path / "index", model).search("the cat")
