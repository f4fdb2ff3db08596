"""Duplicates by which one may delete: the two errors on 400 pairs, beside semhash and paraphrase mining.

    python benchmarks/duplicate_pairs.py          # pip install semhash
    python benchmarks/duplicate_pairs.py --rated  # MRPC and banking messages, which nobody here wrote

The pairs of data/duplicate_pairs.tsv were written by hand, by kind: 200 that say the same and 200 that do not, such as
a template with another number, an opposite, another name, a mail under the same quotation. A pair is found if the
second text is left out as a duplicate of the first. All three use the bundled encoder; semhash and paraphrase mining
have their own way to compare. At each threshold: pairs that are duplicates and are found, and pairs that are none and
are taken. The rows of equal recall are what counts: whoever deletes by a tool pays for the second number.

`{FORM}`, `{PAGE}` and `{QUOTE}` in the file stand for the boilerplate below.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import likewise
from likewise.searching.duplicates.second_look import SecondLook
from rows import ResultFile

DATA = Path(os.environ.get("LIKEWISE_DATA") or Path(__file__).parents[2] / "shared" / "data")
PAIRS = Path(__file__).parent / "data" / "duplicate_pairs.tsv"
MODEL = "bundled:minilm"
LEVELS = (0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)
BOILERPLATE = {
    "{FORM}": "Dear Sir or Madam, I am writing to you as a customer of many years. I have been satisfied with your "
    "work so far, and I hope that we will find a solution. Please confirm that you have received this letter. ",
    "{PAGE}": "Home, News, Contact, Imprint. Follow us on our channels and subscribe to the letter that we send "
    "every month. We use cookies to make your visit pleasant. You can change this at any time in the settings. ",
    "{QUOTE}": "You wrote: Hello, following our telephone call of last week I send you the papers as agreed. Please "
    "read them at leisure and tell me what you think. I am in the office until Friday. With kind regards. "
    "End of quote. ",
}
Pairs = list[tuple[str, str]]
Taken = Callable[[float], list[bool]]
"""From a threshold to whether each pair is taken as one of duplicates."""


def written() -> tuple[Pairs, list[bool], list[str]]:
    """Return the pairs, whether they say the same, and their kinds."""
    with PAIRS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    pairs = [(row["first"], row["second"]) for row in rows]
    for name, text in BOILERPLATE.items():
        pairs = [(first.replace(f"{name} ", text), second.replace(f"{name} ", text)) for first, second in pairs]
    return pairs, [row["same"] == "1" for row in rows], [row["kind"] for row in rows]


def mrpc() -> tuple[Pairs, list[bool], list[str]]:
    """Return the test pairs of MRPC: paraphrases or not, by people."""
    lines = (DATA / "senteval/MRPC/msr_paraphrase_test.txt").read_text(encoding="utf-8-sig").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return [(row[3], row[4]) for row in rows], [row[0] == "1" for row in rows], ["MRPC"] * len(rows)


def banking() -> tuple[Pairs, list[bool], list[str]]:
    """Return messages of bank customers, each with its nearest one of another intent: none of them is a duplicate."""
    lines = (DATA / "domain/banking/classes-test.tsv").read_text(encoding="utf-8").splitlines()
    random.Random(1).shuffle(lines)
    labels, texts = zip(*(line.split("\t", 1) for line in lines[:1500]), strict=True)
    vectors = likewise.load(MODEL, precision="fp32").encode(list(texts), normalize_embeddings=True)
    cosines = vectors @ vectors.T
    for row, label in enumerate(labels):
        cosines[row, [place for place, other in enumerate(labels) if other == label]] = -1
    pairs = [(texts[row], texts[place]) for row, place in enumerate(cosines.argmax(axis=1))]
    return pairs, [False] * len(pairs), ["banking"] * len(pairs)


def ways() -> dict[str, Callable[[Pairs], Taken]]:
    """Return what finds duplicates: from pairs to a function that takes them by a threshold."""
    encoder = likewise.load(MODEL, precision="fp32")

    @cache
    def vectors(texts: tuple[str, ...]) -> np.ndarray:
        return encoder.encode(list(texts), normalize_embeddings=True)

    def cosines(pairs: Pairs) -> np.ndarray:
        found = vectors(tuple(text for pair in pairs for text in pair))
        return (found[::2] * found[1::2]).sum(axis=1)

    def by_likewise(pairs: Pairs) -> Taken:
        texts = [text for pair in pairs for text in pair]

        def taken(level: float) -> list[bool]:
            # As `likewise.duplicates` does it, pair by pair: other pairs must not answer for one.
            look = SecondLook(texts, lambda some: vectors(tuple(some)), level, 0.3)
            return [
                bool(cosine >= level and not look.reason(*pair))
                for cosine, pair in zip(cosines(pairs), pairs, strict=True)
            ]

        return taken

    def by_mining(pairs: Pairs) -> Taken:
        import torch
        from sentence_transformers.util import paraphrase_mining_embeddings

        found = vectors(tuple(text for pair in pairs for text in pair))
        scores = [paraphrase_mining_embeddings(torch.tensor(both))[0][0] for both in np.split(found, len(pairs))]
        return lambda level: [score >= level for score in scores]

    def by_semhash(pairs: Pairs) -> Taken:
        from semhash import SemHash

        hashes = [SemHash.from_records(list(pair), model=encoder) for pair in pairs]
        return lambda level: [len(one.self_deduplicate(threshold=level).selected) < 2 for one in hashes]

    return {"likewise": by_likewise, "paraphrase mining": by_mining, "semhash": by_semhash}


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rated", action="store_true", help="MRPC's test part and banking messages")
    return options


def main() -> None:
    args = parser().parse_args()
    results = ResultFile("duplicate-pairs")
    for name, read in {"MRPC": mrpc, "banking": banking}.items() if args.rated else {"written": written}.items():
        pairs, same, kinds = read()
        for way, find in ways().items():
            if name != "written" and way == "semhash":
                continue  # one index a pair: on thousands of pairs too slow, and its cosines are those of mining
            decided = find(pairs)
            for level in LEVELS:
                taken = decided(level)
                counted: dict[str, int] = defaultdict(int)
                for kind, one in zip(kinds, taken, strict=True):
                    counted[kind] += int(one)
                right = sum(bool(one) for one, is_same in zip(taken, same, strict=True) if is_same)
                wrong = sum(bool(one) for one, is_same in zip(taken, same, strict=True) if not is_same)
                row = {"arm": f"{way} at {level}", "set": name, "score": round(100 * right / max(1, sum(same)), 1)}
                row |= {"wrong": wrong, "of": len(same) - sum(same), "kinds": dict(counted)}
                results.add(row)
                print({key: value for key, value in row.items() if key != "kinds"}, flush=True)


if __name__ == "__main__":
    main()
