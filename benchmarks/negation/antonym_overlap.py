"""SemAntoNeg's accuracy on the items that the antonym list of the preset `negation` holds, and on the others.

    python benchmarks/negation/antonym_overlap.py runs/not

An item turns on a pair of antonyms: the words in which its second and third candidates differ.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import numpy as np

from likewise.augment.negation.antonyms import antonyms
from likewise.corpus.downloads import data_folder
from likewise.inference import load


def words(text: str) -> set[str]:
    return set(re.findall("[a-z]+", text.lower()))


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("model")
    found.add_argument("--data", type=Path, default=data_folder())
    return found


def main() -> None:
    args = parser().parse_args()
    known = antonyms()
    lines = (args.data / "semantoneg/SemAntoNeg_v1.0.jsonl").read_text(encoding="utf-8").splitlines()
    items = [json.loads(line) for line in lines]
    differing = [tuple(words(text) for text in item["sentences"][1:]) for item in items]
    paired = np.array(
        [any(known.get(word) in second - first for word in first - second) for first, second in differing]
    )
    unseen = np.array([not (a ^ b) & set(known) for a, b in differing])
    texts = [text for item in items for text in (item["input"], *item["sentences"])]
    vectors = load(args.model, precision="fp32").encode(texts, normalize_embeddings=True).reshape(len(items), 4, -1)
    cosines = (vectors[:, :1] * vectors[:, 1:]).sum(axis=2)  # (items, 3), the label is the last
    right = cosines[:, 2] > cosines[:, :2].max(axis=1)
    for name, rows in (("in the list", paired), ("not", ~paired), ("neither word in the list", unseen)):
        print(f"{name}: {rows.sum():,} items, {right[rows].mean():.1%}")


if __name__ == "__main__":
    main()
