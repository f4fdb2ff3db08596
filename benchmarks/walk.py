"""How many files of likewise a call enters: what somebody has to open who follows it.

    python benchmarks/walk.py arccse
    python benchmarks/walk.py adapt

The call is made twice on 400 passages of the domain `aviation`, written as Markdown, from all-MiniLM-L6-v2 with STS-B
dev, and counted the second time: what is made once for a process is not in it.
"""

from __future__ import annotations

import argparse
import gzip
import inspect
import json
import sys
import tempfile
import threading
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import likewise
from likewise.runs.cache import data_folder

HOME = str(Path(likewise.__file__).parent)
PASSAGES = 400


def markdown(out: Path) -> Path:
    """Write passages as the sections of a Markdown file."""
    with gzip.open(data_folder() / "domain/aviation/docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, PASSAGES)]
    out.write_text("".join(f"# Passage\n\n{row['text']}\n\n" for row in rows), encoding="utf-8")
    return out


def entered(call: Any) -> set[str]:
    """Return the files of the functions that a call runs; classes and modules that are imported are none."""
    files: set[str] = set()

    def seen(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HOME) and code.co_flags & inspect.CO_OPTIMIZED:
            files.add(code.co_filename.removeprefix(HOME))

    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["arccse", "adapt"])
    what = parser.parse_args().what
    with tempfile.TemporaryDirectory() as folder:
        text = markdown(Path(folder) / "notes.md")
        shared: dict[str, Any] = {"base": "bundled:minilm", "data": data_folder() / "senteval", "quiet": True}

        def call(name: str) -> None:
            out = Path(folder) / name
            if what == "arccse":
                likewise.train("arccse", text, out=out, max_steps=2, batch_size=8, eval_steps=1, **shared)
            else:
                likewise.adapt(text, out=out, **shared)

        call("first")
        print(f"{what}: {len(entered(lambda: call('second')))} files")


if __name__ == "__main__":
    main()
