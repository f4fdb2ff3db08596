"""What likewise takes from the inside of sentence-transformers is there, and taken in one file only."""

import re
from pathlib import Path

import sentence_transformers
from sentence_transformers import SentenceTransformer

import likewise
from likewise.encoder.saved_models import OwnInference


def test_the_private_names_are_there():
    for name in ("_inference", "_load_with_module_classes"):
        assert hasattr(SentenceTransformer, name), f"sentence-transformers has no {name} any more"
    pinned = re.search(
        r"sentence-transformers\[train\]>=(\d+\.\d+),<", (Path(__file__).parents[2] / "pyproject.toml").read_text()
    )
    assert sentence_transformers.__version__.startswith(f"{pinned[1]}.")


def test_no_other_file_uses_one():
    names = {name for name in dir(SentenceTransformer) if re.match(r"_[a-z]", name)} - set(
        dir(__import__("torch").nn.Module)
    )
    used = re.compile(r"(?:model|encoder|cls|kind|super\(\))\.(" + "|".join(sorted(names)) + r")\b")
    found = {
        path.name
        for path in Path(likewise.__file__).parent.rglob("*.py")
        if used.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"saved_models.py"}


def test_encode_goes_through_infer(tiny_model, sentences):
    class Zeros(OwnInference):
        def infer(self, inputs, **settings):
            return super().infer(inputs, **settings) * 0

    assert not Zeros(modules=list(tiny_model)).encode(sentences[:3]).any()
