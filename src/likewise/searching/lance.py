"""LanceDB, imported without the half of it that is not used here."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec, module_from_spec
from typing import Any

from likewise.errors import require_extra

_CLIENT = "lance_namespace_urllib3_client"
"""Of a service that is not used here, generated: LanceDB takes its types alone, and the rest is half of its import."""


def lancedb_module() -> Any:
    """Return the module `lancedb`; raise MissingExtraError if it is not installed."""
    require_extra("search", "An index", "lancedb")
    os.environ.setdefault("LANCEDB_LOG", "error")  # read at the import: it would warn of each table that it makes
    client = find_spec(_CLIENT) if _CLIENT not in sys.modules else None
    if client is not None:
        sys.modules[_CLIENT] = module_from_spec(client)
    import lancedb

    if client is not None:
        del sys.modules[_CLIENT]  # imported by somebody else, it is whole
    return lancedb
