"""Corpora on disk, made small."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write text or bytes to a file of the test's folder and give its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data, or a skip that says where it was looked for."""
    named = os.environ.get("LIKEWISE_DATA")
    folder = Path(named) if named else Path(__file__).parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: set LIKEWISE_DATA, or put it at {folder}")
    return folder
