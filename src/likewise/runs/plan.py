"""The plan of a job, its comparison with an earlier one, and the versions and the machine that a result depends on."""

import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from likewise import processor
from likewise.runs.whole_files import Record, Values

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


def machine() -> Record:
    """Return the processor, and for a job that used torch its threads and the GPU if there is one."""
    facts: Record = {"processor": processor.name(), "cores": os.cpu_count()}
    torch: Any = sys.modules.get("torch")  # slow to import, and some jobs do without
    if torch is not None:
        facts["instruction_set"] = torch.backends.cpu.get_cpu_capability()
        facts["threads"] = torch.get_num_threads()
        facts["gpu"] = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return facts


DECIDING = ("likewise", "sentence-transformers", "transformers", "torch", "tokenizers")
"""Packages whose release decides whether stopped work can be resumed to the same result."""


@dataclass(frozen=True)
class Plan:
    """The plan of a job: everything that determines its result.

    Attributes:
        job: the kind of work, in the words of the command line: "train arccse".
        options: every option that changes the result, as plain values.
        inputs: a fingerprint of every input, by name.
        format: raise it when the same options and inputs give other files than before.
        versions: releases of Python and of the packages that a result depends on.
        defaults: what an earlier plan that does not name an option had in its place: an option that is added later
            has a default that leaves everything as it was.
    """

    job: str
    options: Values
    inputs: Values = field(default_factory=dict)
    format: int = 1
    versions: Mapping[str, str] = field(default_factory=versions)
    defaults: Values = field(default_factory=dict)

    def to_dict(self) -> Record:
        """Return the plan without its defaults, as after a round trip through JSON: a tuple becomes a list."""
        plain: Record = json.loads(json.dumps(vars(self)))
        del plain["defaults"]
        return plain

    def difference(self, earlier: Values, *, unfinished: bool = False) -> str | None:
        """Return the first difference from an earlier plan as a clause for a message; None if there is none.

        Args:
            earlier: what `to_dict` returned then.
            unfinished: compare the versions of the deciding packages too: stopped work is resumed to the same result
                only with the same ones.

        >>> Plan("train", {"seed": 2}).difference(Plan("train", {"seed": 1}).to_dict())
        'seed 1, not 2'
        """
        now = self.to_dict()
        if earlier.get("job") != now["job"]:
            return f"{earlier.get('job')!r}, not {now['job']!r}"
        if earlier.get("format") != now["format"]:
            return f"format {earlier.get('format')} of its files, not {now['format']}"
        added = {name: value for name, value in self.defaults.items() if name in now["options"]}
        before = {**json.loads(json.dumps(added)), **(earlier.get("options") or {})}
        for name, old, new in _changed(before, now["options"]):
            return f"{name} {old!r}, not {new!r}"
        for name, _, _ in _changed(earlier.get("inputs"), now["inputs"]):
            return f"another {name}"
        if unfinished:
            releases = earlier.get("versions") or {}
            for name in DECIDING:
                if releases.get(name) != now["versions"].get(name):
                    return f"{name} {releases.get(name)}, not {now['versions'].get(name)}"
        return None


def _changed(old: object, new: Values) -> Iterator[tuple[str, object, object]]:
    """Yield name, old and new value of each difference; nested mappings are compared by name."""
    old = old if isinstance(old, Mapping) else {}
    for name in [*new, *(name for name in old if name not in new)]:
        before, now = old.get(name), new.get(name)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            yield from _changed(before, now)
        elif before != now:
            yield name, before, now
