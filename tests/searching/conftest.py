import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def saved_model(tiny_base, tmp_path_factory) -> Path:
    """The tiny encoder as a folder."""
    from likewise.encoder.build import build_encoder

    folder = tmp_path_factory.mktemp("saved") / "model"
    build_encoder(str(tiny_base), pooling="cls", head=False).eval().save(str(folder), create_model_card=False)
    return folder


@pytest.fixture(scope="session")
def _notes(sentences, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "lines.txt").write_text("\n".join(sentences[:40]) + "\n")
    (folder / "heads.md").write_text(f"# Rivers\n\n{sentences[40]}\n{sentences[41]}\n\n## Dogs\n\n{sentences[42]}\n")
    (folder / ".hidden").write_text("the cat\n")
    return folder


@pytest.fixture
def notes(_notes, tmp_path) -> Path:
    """A folder of 40 passages in a text file and 2 in a Markdown file; a copy that a test may change."""
    return Path(shutil.copytree(_notes, tmp_path / "notes"))


@pytest.fixture(scope="session")
def _indexed(_notes, saved_model, tmp_path_factory) -> Path:
    from likewise.searching import index

    out = tmp_path_factory.mktemp("indexed") / "notes.index"
    index(_notes, model=saved_model, out=out, quiet=True)
    return out


@pytest.fixture
def indexed(_indexed) -> Path:
    """The index of `notes`, to be read only."""
    return _indexed
