"""The cosines of sentences to a harmless change, to their negation and to others, for docs/pictures/measured.py.

    python benchmarks/negation/cosines.py bundled:minilm runs/not

Sentences of 8 to 20 words of a corpus, every 40th; the harmless change leaves the last word but one out. The learning
curves are those of the last model's log.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np

import likewise
from likewise.augment.negation import negate_batch
from likewise.corpus import prepare
from rows import ResultFile


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("models", nargs="+")
    found.add_argument("--corpus", default="bundled:wiki-sample")
    found.add_argument("--table", default="negation-cosines", help="the result file")
    return found


def main() -> None:
    args = parser().parse_args()
    sentences = list(prepare(args.corpus).dataset["sentence"])
    sample = [one for one in sentences[::40] if 8 <= len(one.split()) <= 20]
    pairs = [(one.sentence, one.negation) for one in negate_batch(sample) if one.negation]
    first, negated = (list(column) for column in zip(*pairs, strict=True))
    shorter = [" ".join(words[:-2] + words[-1:]) for words in map(str.split, first)]
    others = {"positive": shorter, "negation": negated, "random": [*first[1:], first[0]]}
    rows: list[dict[str, Any]] = []
    for name in args.models:
        model = likewise.load(name, precision="fp32")
        cosines = {
            kind: np.diag(likewise.similarity(first, texts, model=model)).astype(float).round(3).tolist()
            for kind, texts in others.items()
        }
        rows.append({"arm": Path(name).name, "sentences": len(first)} | cosines)
        print(name, {kind: round(float(np.mean(values)), 3) for kind, values in cosines.items()})
    log = Path(args.models[-1]) / "log.jsonl"
    if log.is_file():
        rows += [{"arm": "log"} | json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    ResultFile(args.table).add(*rows)


if __name__ == "__main__":
    main()
