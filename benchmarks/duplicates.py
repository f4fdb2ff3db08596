"""Near duplicates: how many of those planted among real texts are found, what else is, and what people say of them.

    python benchmarks/duplicates.py --dev      # chooses: Wikipedia's first sentences, STS-B dev, SICK trial
    python benchmarks/duplicates.py            # confirms: other sentences, banking messages, STS-B test, SICK test
    python benchmarks/duplicates.py --semhash  # beside semhash 0.5 with the same encoder (pip install semhash)

Of 300 texts a copy is planted that says the same (other case, other punctuation, two letters swapped, an article left
out, a word added) and copies that do not (negated by our rules, another number, an opposite, another name). A copy is
found if it is left out as a duplicate. `duplicates` looks for just these four differences, and the opposites are of
the list that it uses: the pairs that people have rated show what it is worth on text that nobody edited.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

import likewise
from likewise.augment.negation import negate
from likewise.augment.negation.antonyms import antonyms
from likewise.augment.negation.edits import like
from likewise.searching.duplicates.duplicates import THRESHOLD, WORDS
from likewise.searching.duplicates.word_differences import difference, shared, wording
from rows import ResultFile

DATA = Path(os.environ.get("LIKEWISE_DATA") or Path(__file__).parents[2] / "shared" / "data")
MODEL = "bundled:minilm"
PLANTED = 300
LEVELS = (0.8, 0.84, 0.88, 0.9, 0.92, 0.95)
_FILLERS = ("also", "really", "indeed", "actually")
_ARTICLES = ("the", "a", "an", "my", "his", "its")


class Planted(NamedTuple):
    """A copy of a text: of which, how it was made, and whether it says the same."""

    text: str
    origin: int
    kind: str
    same: bool


def other_case(text: str, rng: random.Random) -> str:
    return rng.choice((str.lower, str.upper, str.title))(text)


def other_punctuation(text: str, rng: random.Random) -> str:
    bare = re.sub(r"[^\w\s]", "", text)
    return rng.choice((bare, f"{text.rstrip('.?!')}!", f"- {text}", f'"{text}"'))


def swapped_letters(text: str, rng: random.Random) -> str:
    places = list(re.finditer(r"[a-z]{5,}", text))
    if not places:
        return text
    word = rng.choice(places)
    at = rng.randrange(word.start(), word.end() - 1)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def without_article(text: str, rng: random.Random) -> str:
    words = text.split()
    places = [i for i, word in enumerate(words) if word.lower() in _ARTICLES]
    return " ".join(word for i, word in enumerate(words) if i != rng.choice(places)) if places else text


def added_word(text: str, rng: random.Random) -> str:
    words = text.split()
    at = rng.randrange(1, len(words)) if len(words) > 1 else 1
    return " ".join([*words[:at], rng.choice(_FILLERS), *words[at:]])


def other_number(text: str, rng: random.Random) -> str:
    places = list(re.finditer(r"\d", text))
    if not places:
        return text
    at = rng.choice(places).start()
    return text[:at] + rng.choice([d for d in "123456789" if d != text[at]]) + text[at + 1 :]


def opposite(text: str, rng: random.Random) -> str:
    places = [found for found in re.finditer(r"[A-Za-z]+", text) if found[0].lower() in antonyms()]
    if not places:
        return text
    word = rng.choice(places)
    return text[: word.start()] + like(antonyms()[word[0].lower()], word[0]) + text[word.end() :]


def other_name(text: str, rng: random.Random, names: list[str]) -> str:
    places = list(re.finditer(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b", text))
    if not places:
        return text
    word = rng.choice(places)
    return text[: word.start()] + rng.choice(names) + text[word.end() :]


def planted_in(texts: list[str], seed: int) -> list[Planted]:
    """Return two copies or so of 300 of the texts: each way that changes the text is taken in turn."""
    rng = random.Random(seed)
    names = [name for text in texts for name in re.findall(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b", text)] or ["Paris"]
    chosen = rng.sample(range(len(texts)), min(PLANTED, len(texts) // 2))
    negated = negate([texts[i] for i in chosen])
    same = (other_case, other_punctuation, swapped_letters, without_article, added_word)
    found: list[Planted] = []
    for place, (i, negation) in enumerate(zip(chosen, negated, strict=True)):
        way = same[place % len(same)]
        found.append(Planted(way(texts[i], rng), i, way.__name__, True))
        other = (negation or "", other_number(texts[i], rng), opposite(texts[i], rng), other_name(texts[i], rng, names))
        for kind, text in zip(("negated", "other_number", "opposite", "other_name"), other, strict=True):
            if text and text != texts[i]:
                found.append(Planted(text, i, kind, False))
    known = set(texts)
    return [one for one in found if one.text not in known]


def wikipedia(begin: int, count: int) -> list[str]:
    with gzip.open(DATA / "wikipedia/sentences-250k.txt.gz", "rt", encoding="utf-8") as file:
        return list(dict.fromkeys(line.strip() for line in file))[begin : begin + count]


def banking(part: str) -> list[str]:
    lines = (DATA / f"domain/banking/classes-{part}.tsv").read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys(line.split("\t", 1)[1].strip() for line in lines))


def rated(name: str) -> list[tuple[str, str, float]]:
    """Return pairs that people have rated, with the rating as a share of the highest."""
    folder = DATA / "senteval"
    if name.startswith("STS-B"):
        lines = (folder / f"STS/STSBenchmark/sts-{name.split()[1]}.csv").read_text(encoding="utf-8").splitlines()
        rows = [line.split("\t") for line in lines]
        return [(row[5], row[6], float(row[4]) / 5) for row in rows]
    file = {"trial": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}[name.split()[1]]
    rows = [line.split("\t") for line in (folder / "SICK" / file).read_text(encoding="utf-8").splitlines()[1:]]
    return [(row[1], row[2], float(row[3]) / 5) for row in rows]


def found_by_likewise(texts: list[str], threshold: float, words: float) -> set[int]:
    """Return the positions of the texts that are left out."""
    found = likewise.duplicates(texts, model=MODEL, threshold=threshold, words=words, quiet=True)
    return {one for _, *others in found.groups for one in others}


def found_by_semhash(texts: list[str], threshold: float, encoder: object) -> set[int]:
    from semhash import SemHash

    rows = [{"text": text, "place": str(i)} for i, text in enumerate(texts)]
    hashed = SemHash.from_records(rows, columns=["text"], model=encoder)
    return {int(one.record["place"]) for one in hashed.self_deduplicate(threshold=threshold).filtered}


def planted_row(name: str, texts: list[str], ways: dict[str, object], levels: tuple[float, ...]) -> list[dict]:
    copies = planted_in(texts, seed=1)
    every, begin = [*texts, *(one.text for one in copies)], len(texts)
    rows = []
    for way, find in ways.items():
        for level in levels:
            left_out = find(every, level)
            taken = [one for place, one in enumerate(copies, start=begin) if place in left_out]
            right, wrong = (sum(one.same is same for one in taken) for same in (True, False))
            kinds = {kind: [0, 0] for kind in dict.fromkeys(one.kind for one in copies)}
            for one in copies:
                kinds[one.kind][1] += 1
            for one in taken:
                kinds[one.kind][0] += 1
            rows.append(
                {
                    "set": name,
                    "texts": len(every),
                    "way": way,
                    "threshold": level,
                    "precision": round(right / max(1, right + wrong), 4),
                    "recall": round(right / sum(one.same for one in copies), 4),
                    "others": len(left_out) - len(taken),
                    "kinds": kinds,
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def rated_row(name: str, most: int) -> list[dict]:
    pairs = rated(name)[:most]
    vectors = likewise.load(MODEL, precision="fp32").encode(
        [side for pair in pairs for side in pair[:2]], normalize_embeddings=True
    )
    cosines, rating = (vectors[::2] * vectors[1::2]).sum(axis=1), np.array([one for *_, one in pairs])
    words = [(wording(first), wording(second)) for first, second, _ in pairs]
    agree = np.array([not difference(*one) and shared(*one) >= WORDS for one in words])
    rows = []
    for way, allowed in (("cosine alone", np.ones(len(pairs), dtype=bool)), ("likewise", agree)):
        for level in LEVELS:
            taken = allowed & (cosines >= level)
            rows.append(
                {
                    "set": name,
                    "pairs": len(pairs),
                    "way": way,
                    "threshold": level,
                    "taken": int(taken.sum()),
                    "rated 4.5 or more": round(float((rating[taken] >= 0.9).mean()), 4),
                    "rated below 4": round(float((rating[taken] < 0.8).mean()), 4),
                    "recall": round(float((rating[taken] >= 0.9).sum() / (rating >= 0.9).sum()), 4),
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--dev", action="store_true", help="the sets that choose")
    options.add_argument("--semhash", action="store_true", help="beside semhash")
    options.add_argument("--table", default="duplicates", help="the result file")
    return options


def main() -> None:
    args = parser().parse_args()
    ways: dict[str, object] = {
        "cosine alone": lambda texts, level: found_by_likewise(texts, level, 0.0),
        "likewise": lambda texts, level: found_by_likewise(texts, level, WORDS),
    }
    if args.semhash:
        encoder = likewise.load(MODEL, precision="fp32")
        ways = {"semhash": lambda texts, level: found_by_semhash(texts, level, encoder)}
    levels = LEVELS if args.dev else (THRESHOLD,)
    if args.dev:
        rows = planted_row("Wikipedia, sentences 1 to 1,500", wikipedia(0, 1500), ways, levels)
        rows += rated_row("STS-B dev", 1500) + rated_row("SICK trial", 500)
    else:
        rows = planted_row("Wikipedia, sentences 10,001 to 11,500", wikipedia(10_000, 1500), ways, levels)
        rows += planted_row("banking, test, 1,500 messages", banking("test")[:1500], ways, levels)
        rows += [] if args.semhash else rated_row("STS-B test", 1379) + rated_row("SICK test", 1000)
    part = "dev" if args.dev else "semhash" if args.semhash else "test"
    ResultFile(args.table).add(*({"part": part, "model": MODEL} | row for row in rows))


if __name__ == "__main__":
    main()
