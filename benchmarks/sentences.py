"""Where sentences end, by language: recall and precision of our ends, and of three libraries.

    python benchmarks/sentences.py

Sentences of the STS Benchmark that end with a stop are shuffled and joined by blanks, three at a time (in Chinese by
nothing); their ends inside of a text are to be found. The set of English is STS-B dev, the others its translations.
pysbd and sentencex get the right language; nupunkt knows one; ours finds the language out.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import nupunkt
import sentencex

from likewise.corpus.sentence_splitter import sentence_spans
from rows import ResultFile

DATA = Path(os.environ.get("LIKEWISE_DATA") or Path(__file__).parents[2] / "shared" / "data")
LANGUAGES = ("en", "de", "es", "pl", "zh")
TOGETHER, MOST = 3, 400
STOPS = ".!?。！？"


def sentences(language: str) -> list[str]:
    if language == "en":
        path, columns = DATA / "senteval" / "STS" / "STSBenchmark" / "sts-dev.csv", (5, 6)
    else:
        path, columns = DATA / "languages" / language / "sts-dev.tsv", (1, 2)
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        texts = [row[column].strip() for row in rows for column in columns]
    return [text for text in dict.fromkeys(texts) if text and text[-1] in STOPS]


def joined(language: str) -> list[tuple[str, set[int]]]:
    """Return texts with the places of the ends inside of them."""
    texts = sentences(language)
    random.Random(0).shuffle(texts)
    made = []
    for start in range(0, min(len(texts), MOST * TOGETHER) - TOGETHER + 1, TOGETHER):
        text, ends = "", set()
        for sentence in texts[start : start + TOGETHER]:
            ends.add(len(text))
            text += ("" if language == "zh" or not text else " ") + sentence
        made.append((text, ends - {0}))
    return made


def places(text: str, parts: Iterable[str]) -> set[int]:
    """Return the ends of parts inside of a text."""
    ends, at = set(), 0
    for part in filter(None, map(str.strip, parts)):
        at = text.index(part, at) + len(part)
        ends.add(at)
    return ends - {len(text)}


def splitters(language: str) -> dict[str, Callable[[str], Iterable[str]]]:
    found: dict[str, Callable[[str], Iterable[str]]] = {
        "likewise": lambda text: [text[begin:end] for begin, end in sentence_spans(text)],
        "nupunkt": lambda text: [text[begin:end] for begin, end in nupunkt.sent_spans(text)],
        "sentencex": lambda text: sentencex.segment(language, text),
    }
    try:
        import pysbd
    except ImportError:
        return found
    return found | {"pysbd": pysbd.Segmenter(language=language, clean=False).segment}


def parser() -> argparse.ArgumentParser:
    """Return the parser, which has no options."""
    return argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)


def main() -> None:
    parser().parse_args()
    results = ResultFile("sentences")
    for language in LANGUAGES:
        texts = joined(language)
        for name, split in splitters(language).items():
            if results.has(arm=name, set=language):
                continue
            right = wrong = missed = 0
            for text, ends in texts:
                found = places(text, split(text))
                right, wrong, missed = right + len(found & ends), wrong + len(found - ends), missed + len(ends - found)
            recall, precision = 100 * right / (right + missed), 100 * right / max(1, right + wrong)
            score = 2 * recall * precision / max(1e-9, recall + precision)
            facts = {"recall": recall, "precision": precision, "ends": right + missed}
            results.add({"arm": name, "set": language, "score": score, **facts})
            print(f"{language} {name}: recall {recall:.1f}, precision {precision:.1f}")


if __name__ == "__main__":
    main()
