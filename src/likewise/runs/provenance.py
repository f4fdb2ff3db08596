"""The versions and the machine that a result depends on."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from likewise import processor

PACKAGES = (
    "likewise",
    "sentence-transformers",
    "transformers",
    "torch",
    "tokenizers",
    "numpy",
    "pytorch-optimizer",
)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a result depends on."""
    releases = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            releases[package] = version(package)
        except PackageNotFoundError:  # a checkout that was never installed
            releases[package] = "not installed"
    return releases


def machine() -> dict[str, Any]:
    """Return the processor, and for a job that used torch its threads and the GPU if there is one."""
    facts: dict[str, Any] = {"processor": processor.name(), "cores": os.cpu_count()}
    torch: Any = sys.modules.get("torch")  # slow to import, and some jobs do without
    if torch is not None:
        facts["instruction_set"] = torch.backends.cpu.get_cpu_capability()
        facts["threads"] = torch.get_num_threads()
        facts["gpu"] = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return facts
