"""Real data, where there is some."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data, or a skip that says where it was looked for."""
    named = os.environ.get("LIKEWISE_DATA")
    folder = Path(named) if named else Path(__file__).parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: set LIKEWISE_DATA, or put it at {folder}")
    return folder
