import random
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def many(sentences, word_model, tmp_path_factory) -> Path:
    """The index of 300 sentences, a line each, by `word_model`."""
    from likewise.searching import index

    folder = tmp_path_factory.mktemp("many")
    (folder / "lines.txt").write_text("\n".join(random.Random(1).sample(sentences, 300)) + "\n")
    weights = {"vectors": 1, "words": 1, "neighbours": 0.3, "nearest": 5}
    index(folder / "lines.txt", model=word_model, out=folder / "many.index", pipeline=weights, quiet=True)
    return folder / "many.index"
