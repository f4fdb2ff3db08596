"""The releases and the machine that produced a result."""

import os
import platform
import re
import sys
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from likewise import processor
from likewise.runs.whole_files import Record

DECIDING = ("likewise", "sentence-transformers", "transformers", "torch", "tokenizers")
"""Packages whose release decides whether an interrupted job can be resumed to the same result."""
PACKAGES = (*DECIDING, "numpy", "pytorch-optimizer")


def versions(*rooms: str) -> dict[str, str]:
    """Return the versions of Python and of the packages that a result depends on.

    Args:
        rooms: Names of the subpackages whose code does the work. Before a release, the code changes while its version
            number stays the same, so the version of likewise includes a digest of these subpackages.
    """
    numbers = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:  # a checkout that was never installed
            numbers[package] = "not installed"
    if rooms and not re.fullmatch(r"[\d.]+", numbers["likewise"]):
        numbers["likewise"] += f" (code {_code(rooms)})"
    return numbers


def releases() -> list[str]:
    """Return the versions of the packages that determine a result, for the key of a cache entry."""
    numbers = versions()
    return [f"{package} {numbers[package]}" for package in DECIDING]


def machine() -> Record:
    """Return the processor, and for a job that used torch its threads and the GPU if there is one."""
    facts: Record = {"processor": processor.name(), "cores": os.cpu_count()}
    torch: Any = sys.modules.get("torch")  # slow to import, and some jobs do without
    if torch is not None:
        facts["instruction_set"] = torch.backends.cpu.get_cpu_capability()
        facts["threads"] = torch.get_num_threads()
        facts["gpu"] = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return facts


def _code(rooms: Sequence[str]) -> str:
    """Return a digest of the Python files of some of likewise's folders."""
    digest = blake2b(digest_size=4)
    for path in sorted(path for room in rooms for path in (Path(__file__).parents[1] / room).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
