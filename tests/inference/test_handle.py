"""Models that are used without loading them: by what is known of them, and by their exports."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import likewise
from likewise.inference.handle import Facts, ModelHandle, recalled, remember

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'likewise[onnx]'")

RUN = """
import sys
from likewise.cli import main
sys.argv = ["likewise", *sys.argv[1:]]
try:
    main()
finally:
    print("torch", "torch" in sys.modules, file=sys.stderr)
"""


def command(*arguments):
    done = subprocess.run([sys.executable, "-c", RUN, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, "torch True" in done.stderr


@pytest.fixture
def model(saved_model, sentences, tmp_path):
    """A folder with a model that has a checked export and is known."""
    folder = shutil.copytree(saved_model, tmp_path / "model")
    encoder = likewise.load(folder, engine="onnx")
    encoder.encode(sentences)
    remember(folder, Facts.of(encoder))
    return folder


def test_the_facts_are_those_of_the_model(saved_model):
    model = SentenceTransformer(str(saved_model), prompts={"query": "q: ", "passage": "p: "}, truncate_dim=8)
    facts = Facts.of(model)
    assert facts.dimension == len(model.encode("the cat"))
    assert (facts.longest, facts.truncate_dim) == (model.max_seq_length, 8)
    assert [facts.prompt(role) for role in ("query", "document", None)] == ["q: ", "p: ", ""]


def test_the_vectors_are_those_of_the_model(model, sentences):
    wanted = SentenceTransformer(str(model)).encode(sentences, normalize_embeddings=True)
    np.testing.assert_allclose(ModelHandle(model).export()(sentences), wanted, atol=1e-5)


def test_a_model_that_has_changed_is_not_known(model):
    assert isinstance(recalled(model), Facts)
    about = (model / "config.json").stat()
    os.utime(model / "config.json", ns=(about.st_atime_ns, about.st_mtime_ns + 1))
    with pytest.raises(LookupError):
        recalled(model)


def test_a_model_that_is_not_known_or_not_here(saved_model, tmp_path):
    new = shutil.copytree(saved_model, tmp_path / "new")
    for name in (new, tmp_path / "nowhere", "someone/on-the-hub"):
        with pytest.raises(LookupError):
            recalled(name)


def test_similarity_does_without_torch(model):
    found, torch = command("similarity", model, "the cat sees the dog", "the dog sees the cat")
    assert not torch
    assert float(found) == pytest.approx(
        likewise.similarity("the cat sees the dog", "the dog sees the cat", model=str(model)), abs=1e-4
    )


def test_indexing_again_does_without_torch(saved_model, notes, tmp_path, monkeypatch):
    monkeypatch.delenv("LIKEWISE_EXPORTS")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    out, model = tmp_path / "notes.index", shutil.copytree(saved_model, tmp_path / "model")
    assert command("index", notes, "--model", model, "--out", out)[1]  # and leaves an export
    (notes / "more.txt").write_text("the old king sees a red house by the river\n")
    found, torch = command("index", notes, "--model", model, "--out", out)
    assert not torch
    assert "1 encoded now" in found
    hit = json.loads(command("search", out, "the old king sees a red house by the river", "--json")[0])["hits"][0]
    assert hit["similarity"] == pytest.approx(1.0, abs=1e-5)
