"""Checks that a change of the code leaves results alone: models of five steps, and the STS scores of the base.

    python benchmarks/same_models.py record --source OLD/src --data DATA --out before.npz     # at the old commit
    python benchmarks/same_models.py record --source src --data DATA --out after.npz
    python benchmarks/same_models.py compare before.npz after.npz

`record` trains every recipe for five steps of eight sentences in float32 from a fixed seed and writes the hash of the
weights and the vectors of 200 sentences; then the vectors and the seven STS scores of all-MiniLM-L6-v2 as shipped.
`compare` prints whether each is equal to the bit, and ends with exit code 1 if two numbers differ by more than 1e-6.
Both files have to come from one machine: another processor rounds otherwise. The pooling of each recipe is named, so
that another default changes nothing here. An older release is installed with its recipes, for the entry points:

    pip install --no-deps --target OLD/site OLD OLD/benchmarks/compared          # then --source OLD/site
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

SHARED = "--max-steps 5 --batch-size 8 --select-by last --precision fp32 --seed 1 --quiet"
RECIPES = {
    "arccse": "arccse --pooling cls",
    "arccse-mean": "arccse --pooling mean --sam-rho 0.05 --triplet-weight 1 --triplet-margin 0.5",
    "simcse": "simcse --pooling cls --chunk 3",
    "esimcse": "esimcse --pooling cls",
    "consert": "consert --pooling last-two",
    "ct": "ct --pooling mean",
    "tsdae": "tsdae --pooling cls",
    "mask-distillation": "mask-distillation",
    "sncse": "sncse --distil-mask never",
    "sncse-hard-negative": "sncse --distil-mask never --negation hard-negative --sam-rho 0.05",
    "exclusion": "exclusion",
    "light": "light --words 500",
    "gclsr": "gclsr",
}
TOLERANCE = 1e-6


def record(source: Path, out: Path, data: Path, only: str, base: str, words: str) -> None:
    """Train, encode and score with the package of `source`."""
    found: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Before torch is imported; a cache of its own, since another version's entries would be taken.
        os.environ |= {"LIKEWISE_PROCESSOR": "avx2", "OMP_NUM_THREADS": "1", "LIKEWISE_CACHE": str(folder / "cache")}
        sys.path.insert(0, str(source))
        import likewise

        if not Path(likewise.__file__).is_relative_to(source):
            sys.exit(f"{likewise.__file__} is not of {source}")
        with gzip.open(data / "wikipedia" / "sentences-250k.txt.gz", "rt", encoding="utf-8") as file:
            lines = [next(file).strip() for _ in range(600)]
        corpus, texts = folder / "corpus.txt", lines[400:]
        corpus.write_text("\n".join(lines[:400]), encoding="utf-8")

        def encode(label: str, model: str) -> None:
            vectors = likewise.load(model, precision="fp32", engine="torch").encode(texts, batch_size=8)
            found[label] = np.asarray(vectors)
            print(label, found[label].shape, float(np.abs(found[label]).sum()), flush=True)

        for label in [*RECIPES, "minilm", "sts"] if not only else only.split(","):
            target = folder / label
            if label == "minilm":
                encode(label, "bundled:minilm")
            elif label == "sts":
                found[label] = scores(data, folder / "scores.json")
            else:
                start = words if label == "gclsr" else base
                command(f"train {RECIPES[label]} --base {start} --corpus {corpus} --out {target} {SHARED}")
                weights = b"".join(path.read_bytes() for path in sorted(target.rglob("*.safetensors")))
                found[f"{label}, weights"] = np.frombuffer(hashlib.sha256(weights).digest(), np.uint8)
                encode(label, str(target))
            np.savez(out, **found)


def scores(data: Path, report: Path) -> np.ndarray:
    """Return the scores of all-MiniLM-L6-v2 on the seven STS tasks, in the order of their names."""
    command(f"evaluate bundled:minilm --tasks sts --data {data / 'senteval'} --json {report}")
    found = dict(_scores(json.loads(report.read_text(encoding="utf-8"))))
    print(json.dumps(found))
    return np.array([found[key] for key in sorted(found)])


def command(words: str) -> None:
    """Run a command of likewise in this process."""
    from likewise.cli import main

    sys.argv = ["likewise", *words.split()]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


def _scores(report: object, path: str = "") -> list[tuple[str, float]]:
    """Every number of a report that is a score, by its place."""
    if isinstance(report, dict):
        kept = {key: value for key, value in report.items() if key not in ("settings", "seconds")}
        return [one for key, value in kept.items() for one in _scores(value, f"{path}/{key}")]
    if isinstance(report, list):
        return [one for i, value in enumerate(report) for one in _scores(value, f"{path}/{i}")]
    return [(path, float(report))] if isinstance(report, float) else []


def compare(before: Path, after: Path) -> int:
    """Print whether each entry is equal, and the largest difference of numbers; return the exit code."""
    old, new = np.load(before), np.load(after)
    worst = 0.0
    for label in old.files:
        if label not in new.files or old[label].shape != new[label].shape:
            print(f"{label}: missing or of another shape")
            worst = float("inf")
        elif old[label].tobytes() == new[label].tobytes():
            print(f"{label}: equal to the bit")
        elif label.endswith(", weights"):
            print(f"{label}: other bits")
        else:
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
    making.add_argument("--only", default="", help="recipes, minilm (its vectors) and sts (its scores), with commas")
    making.add_argument("--base", default="bundled:minilm", help="of the trainings; a tiny one takes a minute")
    making.add_argument("--words", default="bundled:glove", help="word vectors of gclsr")
    comparing = verbs.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    return found


def main() -> None:
    given = parser().parse_args()
    if given.verb == "compare":
        sys.exit(compare(given.before, given.after))
    record(given.source.resolve(), given.out, given.data.resolve(), given.only, given.base, given.words)


if __name__ == "__main__":
    main()
