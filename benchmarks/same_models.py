"""Checks that a change of the code leaves results alone: models of five steps, and the STS scores of the base.

    python benchmarks/same_models.py record --source OLD/src --data DATA --out before.npz     # at the old commit
    python benchmarks/same_models.py record --source src --data DATA --out after.npz
    python benchmarks/same_models.py compare before.npz after.npz

`record` trains every recipe for five steps of eight sentences in float32 from a fixed seed and writes the vectors of
fifty sentences, and the seven STS scores of all-MiniLM-L6-v2 as it is shipped. `compare` ends with exit code 1 where
two numbers differ by more than 1e-6. Both files have to come from one machine: another processor rounds otherwise. The
pooling of each recipe is named, so that another default changes nothing here.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SHARED = "--max-steps 5 --batch-size 8 --select-by last --precision fp32 --seed 1 --quiet"
MINILM, GLOVE = "--base bundled:minilm", "--base bundled:glove"
RECIPES = {
    "arccse": f"arccse {MINILM} --pooling cls",
    "arccse-mean": f"arccse {MINILM} --pooling mean --sam-rho 0.05",
    "simcse": f"simcse {MINILM} --pooling cls",
    "esimcse": f"esimcse {MINILM} --pooling cls",
    "consert": f"consert {MINILM} --pooling last-two",
    "ct": f"ct {MINILM} --pooling mean",
    "tsdae": f"tsdae {MINILM} --pooling cls",
    "mask-distillation": f"mask-distillation {MINILM}",
    "sncse": f"sncse {MINILM}",
    "exclusion": f"exclusion {MINILM}",
    "light": f"light {MINILM}",
    "gclsr": f"gclsr {GLOVE}",
}
TOLERANCE = 1e-6

VECTORS = """
import sys, numpy as np, likewise
model = likewise.load(sys.argv[1], precision="fp32")
texts = open(sys.argv[2], encoding="utf-8").read().splitlines()
np.save(sys.argv[3], np.asarray(model.encode(texts, batch_size=8)))
"""


def run(source: Path, *command: str) -> str:
    """Run Python with the package of `source`; what it printed."""
    environment = os.environ | {"PYTHONPATH": str(source), "LIKEWISE_PROCESSOR": "avx2", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)[:300]}\n{done.stderr[-3000:]}")
    return done.stdout


def record(source: Path, out: Path, data: Path, only: str) -> None:
    """Train and score with the package of `source`."""
    cli = ("-c", "from likewise.cli import main; main()")
    found: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sentences = data / "wikipedia" / "sentences-250k.txt.gz"
        corpus, texts = folder / "corpus.txt", folder / "texts.txt"
        with gzip.open(sentences, "rt", encoding="utf-8") as file:
            lines = [next(file).strip() for _ in range(450)]
        corpus.write_text("\n".join(lines[:400]), encoding="utf-8")
        texts.write_text("\n".join(lines[400:]), encoding="utf-8")
        for label, words in RECIPES.items():
            if only and label not in only.split(","):
                continue
            run(source, *cli, "train", *words.split(), "--corpus", str(corpus), "--out", str(folder / label),
                *SHARED.split())  # fmt: skip
            run(source, "-c", VECTORS, str(folder / label), str(texts), str(folder / f"{label}.npy"))
            found[label] = np.load(folder / f"{label}.npy")
            print(label, found[label].shape, float(np.abs(found[label]).sum()))
        if not only:
            report = folder / "scores.json"
            run(source, *cli, "evaluate", "bundled:minilm", "--tasks", "sts", "--data", str(data / "senteval"),
                "--json", str(report))  # fmt: skip
            scores = dict(_scores(json.loads(report.read_text(encoding="utf-8"))))
            found["sts"] = np.array([scores[key] for key in sorted(scores)])
            print(json.dumps(scores))
    np.savez(out, **found)


def _scores(report: object, path: str = "") -> list[tuple[str, float]]:
    """Every number of a report that is a score, by its place."""
    if isinstance(report, dict):
        kept = {key: value for key, value in report.items() if key not in ("settings", "seconds")}
        return [one for key, value in kept.items() for one in _scores(value, f"{path}/{key}")]
    if isinstance(report, list):
        return [one for i, value in enumerate(report) for one in _scores(value, f"{path}/{i}")]
    return [(path, float(report))] if isinstance(report, float) else []


def compare(before: Path, after: Path) -> int:
    """Print the largest difference of each entry; the exit code."""
    old, new = np.load(before), np.load(after)
    worst = 0.0
    for label in old.files:
        if label not in new.files or old[label].shape != new[label].shape:
            print(f"{label}: missing or of another shape")
            worst = float("inf")
            continue
        difference = float(np.abs(old[label] - new[label]).max())
        worst = max(worst, difference)
        print(f"{label}: {difference:.2e}")
    return int(worst > TOLERANCE)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = found.add_subparsers(dest="verb", required=True)
    making = verbs.add_parser("record")
    making.add_argument("--source", type=Path, default=Path("src"))
    making.add_argument("--out", type=Path, required=True)
    named = os.environ.get("LIKEWISE_DATA")
    making.add_argument("--data", type=Path, default=named, required=not named, help="of the sentences and STS tasks")
    making.add_argument("--only", default="", help="these alone, with commas")
    comparing = verbs.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    return found


def main() -> None:
    given = parser().parse_args()
    if given.verb == "compare":
        sys.exit(compare(given.before, given.after))
    record(given.source.resolve(), given.out, given.data.resolve(), given.only)


if __name__ == "__main__":
    main()
