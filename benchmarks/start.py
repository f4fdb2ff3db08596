"""Seconds until a new process has done its first thing, by the clock, in turn with the peer: the median of the turns.

    python benchmarks/start.py

The peers: for `likewise --version` an empty program, as nothing can be faster; for `import likewise` the import of
sentence-transformers; for `likewise similarity` the same cosine by sentence-transformers; for `likewise search` the
same search before the model is exported by `likewise export`. The first call of `similarity` before that is shown too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from claims import Claim, finish, with_claims
from likewise.data.bundled import resolve_model

SEARCH = "start, `likewise search` after `likewise export`: before it"
PAIR = ("A man is playing a guitar.", "Somebody plays music.")
COSINE = """
import sys
from sentence_transformers import SentenceTransformer
a, b = SentenceTransformer(sys.argv[1], device="cpu").encode(sys.argv[2:], normalize_embeddings=True)
print(f"{a @ b:.4f}")
"""


def seconds(command: list[str]) -> tuple[float, str]:
    """Run a command, and return how long it took and what it printed."""
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, done.stdout


def importing(package: str) -> float:
    """Return the seconds of an import in a new process, without the start of Python."""
    code = f"import time; start = time.perf_counter(); import {package}; print(time.perf_counter() - start)"
    return float(seconds([sys.executable, "-c", code])[1])


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--model", default="bundled:minilm")
    found.add_argument("--turns", type=int, default=5)
    with_claims(found)
    return found


def main() -> None:
    args = parser().parse_args()
    python, likewise = sys.executable, str(Path(sys.executable).with_name("likewise"))
    similarity = [likewise, "similarity", args.model, *PAIR]
    peer = [python, "-c", COSINE, resolve_model(args.model), *PAIR]
    found: dict[str, tuple[list[float], list[float]]] = {
        name: ([], [])
        for name in (
            "start, `likewise --version`: an empty Python program",
            "start, `import likewise`: import of sentence_transformers",
            "start, `likewise similarity` after `likewise export`: sentence-transformers",
        )
    }
    version, imports, cosine = found.values()
    with tempfile.TemporaryDirectory() as cache:
        os.environ |= {"LIKEWISE_CACHE": cache, "LIKEWISE_EXPORTS": "never"}
        text, index = Path(cache, "text.txt"), str(Path(cache, "index"))
        text.write_text("".join(f"{sentence}\n" for sentence in PAIR))
        seconds([likewise, "index", str(text), "--model", args.model, "--out", index])
        search = [likewise, "search", index, "Who makes music?"]
        before = [seconds(search)[0] for _ in range(args.turns)]
        theirs, ours = seconds(peer), seconds(similarity)
        if theirs[1] != ours[1]:
            sys.exit(f"the cosines differ: {theirs[1]} and {ours[1]}")
        print(f"before the export: sentence-transformers {theirs[0]:.1f} s, likewise similarity {ours[0]:.1f} s")
        seconds([likewise, "export", args.model])
        for _ in range(args.turns):
            version[0].append(seconds([python, "-c", ""])[0])
            version[1].append(seconds([likewise, "--version"])[0])
            imports[0].append(importing("sentence_transformers"))
            imports[1].append(importing("likewise"))
            cosine[0].append(seconds(peer)[0])
            cosine[1].append(seconds(similarity)[0])
        found[SEARCH] = before, [seconds(search)[0] for _ in range(args.turns)]
    claims = [Claim(name, "s", *map(statistics.median, both)) for name, both in found.items()]
    for claim in claims:
        print(f"{claim.name}: {claim.peer:.3f} s, {claim.ours:.3f} s")
    finish(args, claims)


if __name__ == "__main__":
    main()
