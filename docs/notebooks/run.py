"""Run notebooks from top to bottom in an empty folder: python docs/notebooks/run.py [--write] NOTEBOOK...

A notebook that fails, or takes longer than five minutes on an idle machine of two cores, is an error. With --write what
it shows is saved in it, which is what the site prints.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

LIMIT = 300.0
"""Seconds."""


def run(path: Path, write: bool, limit: float) -> None:
    notebook = nbformat.read(path, as_version=4)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=None, resources={"metadata": {"path": folder}}).execute()
    seconds = time.monotonic() - started
    print(f"{path}: {seconds:.0f} s", flush=True)
    if seconds > limit:
        sys.exit(f"{path} took {seconds:.0f} s; the limit is {limit:.0f} (--limit)")
    if write:
        for cell in notebook.cells:
            cell.metadata.clear()  # times of execution would differ with every run
        nbformat.write(notebook, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="save what the notebook shows")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds; more on a busy machine")
    args = parser.parse_args()
    for path in args.notebooks:
        run(path, args.write, args.limit)


if __name__ == "__main__":
    main()
