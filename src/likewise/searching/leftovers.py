"""The folders that earlier versions of an index have left, which its readers may still use for a while."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

from likewise.runs.job import read_record, work_of
from likewise.runs.results import JobError, read_working_file

GRACE = 15 * 60.0
"""Seconds for which they are kept."""
OWN_FOLDER = re.compile(r"passages-[0-9a-f]{8}\.lance|geometry-[0-9a-f]{8}")
"""The names of the folders that `index` makes."""


def left_in(target: Path) -> dict[str, float]:
    """Return the folders of the present index and of those before it, with the time since which none is needed.

    Readers may still use them for a while. Those that a killed run began are in its notes.
    """
    names: dict[str, float] = {}
    for read in (lambda: read_record(target), lambda: read_working_file(work_of(target) / "notes.json")):
        with suppress(JobError):
            found, now = read(), time.time()
            mine = [f"{found.get('table')}.lance", found.get("geometry")]
            old = found.get("left")
            names |= {one: now for one in mine if isinstance(one, str) and OWN_FOLDER.fullmatch(one)}
            for name, since in old.items() if isinstance(old, dict) else ():
                if OWN_FOLDER.fullmatch(name) and isinstance(since, int | float):
                    names[name] = since
    return names
