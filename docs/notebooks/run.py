"""Run notebooks from top to bottom in an empty folder.

    python docs/notebooks/run.py --write docs/notebooks/adapt.ipynb

A notebook that fails is an error, and so is one that takes longer than five minutes, by the clock and also by the time
of the processor: on a busy machine the clock says little. With --write what it shows is saved in it, which is what the
site prints.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 300.0
"""Seconds."""


def processor_seconds() -> float:
    """Return the processor time of all kernels that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def run(path: Path, write: bool, limit: float, folder: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    started, before = time.monotonic(), processor_seconds()
    client = NotebookClient(
        notebook, timeout=None, coalesce_streams=True, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    seconds, used = time.monotonic() - started, processor_seconds() - before
    print(f"{path}: {seconds:.0f} s, of the processor {used:.0f} s", flush=True)
    if min(seconds, used) > limit:
        sys.exit(f"{path} took {min(seconds, used):.0f} s; the limit is {limit:.0f} (--limit)")
    if write:
        for cell in notebook.cells:
            cell.metadata.clear()  # times of execution would differ with every run
            if "outputs" in cell:
                cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]  # warnings and bars
        nbformat.write(notebook, path)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("notebooks", nargs="+", type=Path)
    found.add_argument("--write", action="store_true", help="save what the notebook shows")
    found.add_argument("--limit", type=float, default=LIMIT, help="seconds")
    found.add_argument("--folder", type=Path, help="run in this folder and keep the models, to look at them")
    return found


def main() -> None:
    args = parser().parse_args()
    for path in args.notebooks:
        if args.folder is not None:
            run(path, args.write, args.limit, args.folder)
            continue
        with tempfile.TemporaryDirectory() as folder:
            run(path, args.write, args.limit, Path(folder))


if __name__ == "__main__":
    main()
