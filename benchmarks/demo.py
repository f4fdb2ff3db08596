"""How long `make demo` takes in a fresh clone, installation included, and what it shows.

    python benchmarks/demo.py

The machine should do nothing else. README and the command say the minutes that the latest row has.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
import time
from pathlib import Path

from rows import ResultFile

ROOT = Path(__file__).parents[1]


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument(
        "--demo", type=Path, help="Directory of a demonstration that is there; its figures are added alone"
    )
    return found


def rows_of(demo: Path) -> list[dict[str, object]]:
    """Return the figures of a demonstration as rows."""
    rows: list[dict[str, object]] = []
    for row in json.loads((demo / "demo.json").read_text(encoding="utf-8")):
        shared = {"arm": row["system"], "seed": 1}
        for figure in [*row["shows"], row["against"]]:
            rows.append(shared | {"set": figure["name"], "score": figure["after"], "before": figure["before"]})
        if "text" in row:
            rows.append(shared | {"set": "explained", "text": row["text"]})
    return rows


def main() -> None:
    args = parser().parse_args()
    if args.demo:
        ResultFile("demo").add(*rows_of(args.demo))
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "-q", ROOT, folder], check=True)
        begun = time.monotonic()
        subprocess.run(["make", "demo"], cwd=folder, check=True)
        spent = round(time.monotonic() - begun, 1)
        ResultFile("demo").add(
            {"arm": "make demo", "set": "seconds", "score": spent}, *rows_of(Path(folder) / "runs/demo")
        )
    print(f"{spent:.0f} s: MINUTES of src/likewise/cli/demo.py is {math.ceil(spent / 60)}; then make tables")


if __name__ == "__main__":
    main()
