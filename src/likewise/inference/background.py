"""Exports that are made in the background, by a process of its own, for later processes to find.

It gives way to whatever else runs, and ends with the process that started it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from likewise.runs.cache import CacheError, cache_folder, made_in_cache

VARIABLE = "LIKEWISE_EXPORTS"
"""Environment variable: `never` for no export that was not asked for; `always` for one under pytest too."""
_PROGRAM = """
from likewise.inference.background import hear
told = hear()
from likewise.inference.model_export import told_export
told_export(told)
"""
_LONGEST = 2000  # characters of a text that is handed over
_STARTED: list[Any] = []


def wanted() -> bool:
    """Return whether exports may be made that nobody asked for: not under pytest, nor in a cache that is only read."""
    told = os.environ.get(VARIABLE, "").strip().lower()
    if told == "never" or ("PYTEST_CURRENT_TEST" in os.environ and told != "always"):
        return False
    with suppress(CacheError):
        return bool(made_in_cache(cache_folder() / "engines"))
    return False


def start(name: str, fingerprint: str, pair: tuple[str, str], texts: Sequence[str]) -> bool:
    """Start making an export of the model of a folder or name; return whether it was started.

    Args:
        fingerprint: of the model that encodes now. If the one that is loaded by name is another, none is made.
        pair: engine and precision.
        texts: 1 or more, on which its vectors are compared with torch's.
    """
    if not wanted() or not sys.executable or getattr(sys, "frozen", False):  # the program itself would start again
        return False
    told = {"name": name, "fingerprint": fingerprint, "pair": pair, "texts": [text[:_LONGEST] for text in texts]}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {VARIABLE: "never", "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is for the process in front
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(told).encode() + b"\n")
        process.stdin.flush()
    except OSError:
        return False
    _STARTED.append(process)  # its input stays open for as long as this process runs
    return True


def hear() -> dict[str, Any]:
    """Read the message of `start`; from now on this process ends when the one that started it does."""
    told: dict[str, Any] = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(19)
    return told


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(1)
