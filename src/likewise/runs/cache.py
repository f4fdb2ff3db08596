"""The cache: the folder of files that likewise can make again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder of the cache: $LIKEWISE_CACHE if set, otherwise ~/.cache/likewise."""
    named = os.environ.get("LIKEWISE_CACHE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "likewise"
