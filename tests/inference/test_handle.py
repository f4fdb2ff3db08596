"""Models that are used without loading them: by what is known of them, and by their exports."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

import likewise
from likewise.cli import build_app
from likewise.inference.handle import Facts, ModelHandle, recalled, remember

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'likewise[onnx]'")

RUN = """
import json, sys
from typer.testing import CliRunner
from likewise.cli import build_app
done = [CliRunner().invoke(build_app(), words, catch_exceptions=False) for words in json.loads(sys.argv[1])]
print(json.dumps([[one.exit_code, one.stdout] for one in done]))
sys.exit("torch" in sys.modules)
"""


def without_torch(*commands):
    """What commands print one after the other in a new interpreter, which must not import torch."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run([sys.executable, "-c", RUN, words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    codes, printed = zip(*json.loads(done.stdout), strict=True)
    assert set(codes) == {0}, printed
    return printed


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
    (found,) = without_torch(["similarity", model, "the cat sees the dog", "the dog sees the cat"])
    assert float(found) == pytest.approx(
        likewise.similarity("the cat sees the dog", "the dog sees the cat", model=str(model)), abs=1e-4
    )


def test_indexing_again_does_without_torch(saved_model, notes, tmp_path, monkeypatch):
    monkeypatch.delenv("LIKEWISE_EXPORTS")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    out, model = tmp_path / "notes.index", shutil.copytree(saved_model, tmp_path / "model")
    made = CliRunner().invoke(build_app(), ["index", str(notes), "--model", str(model), "--out", str(out)])
    assert made.exit_code == 0  # and leaves an export
    (notes / "more.txt").write_text("the old king sees a red house by the river\n")
    text = "the old king sees a red house by the river"
    again, found = without_torch(["index", notes, "--model", model, "--out", out], ["search", out, text, "--json"])
    assert "1 encoded now" in again
    assert json.loads(found)["hits"][0]["similarity"] == pytest.approx(1.0, abs=1e-5)
