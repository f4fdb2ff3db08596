"""Triplets from the sections of articles (Ein Dor et al. 2018): sentence, same section, other section.

The idea is that a sentence is nearer in theme to its own section than to others of the article. Their set has 1.8
million triplets for training and 222 thousand for testing; the same CSV format is read and written here.
"""

import csv
import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.documents import Document
from likewise.corpus.tables import read_table
from likewise.errors import LikewiseError
from likewise.runs.results import written_result

COLUMNS = ("Sentence1", "Sentence2", "Sentence3")
_ALSO_WRITTEN = ("Article", "Section", "Other section")
# No caption or fragment, and no list that was run together. Ours: the paper's files are cleaned already.
MIN_WORDS, MAX_WORDS = 5, 50
SEED = 42
# Of an article at most, each of another anchor: 10,000 of them leave others of ten thousand articles to train on.
PER_ARTICLE = 4


@dataclass(frozen=True)
class Triplet:
    """Three sentences of one article.

    Attributes:
        anchor, positive: two sentences of one section.
        negative: a sentence of another section.
        article, section, other: the article's title and the two headings; empty where a file has none.
    """

    anchor: str
    positive: str
    negative: str
    article: str = ""
    section: str = ""
    other: str = ""


def section_triplets(documents: Iterable[Document], count: int, seed: int = SEED, skip: int = 0) -> Iterator[Triplet]:
    """Yield triplets drawn from articles, in the order of the articles.

    The opening of an article is not used, because it touches on every section. What is drawn from an article
    depends on the seed and its id alone, so that a longer list begins with the shorter one.

    Args:
        count: triplets at most; fewer where the articles are too few.
        skip: pass over the articles of the first `skip` triplets, which are kept to evaluate on: training triplets
            then share no article with them.
    """
    if count < 1 or skip < 0:
        raise LikewiseError(f"count is {count} and skip is {skip}: give a count of 1 or more, and a skip of 0 or more.")
    passed = yielded = 0
    for document in documents:
        drawn = _draw(document, seed)
        if passed < skip:
            passed += len(drawn)
            continue
        for triplet in drawn[: count - yielded]:
            yielded += 1
            yield triplet
        if yielded == count:
            return


def _draw(document: Document, seed: int) -> list[Triplet]:
    sections = []
    for section in document.sections:
        sentences = [s for s in dict.fromkeys(section.sentences) if MIN_WORDS <= len(s.split()) <= MAX_WORDS]
        if section.heading and sentences:
            sections.append((section.heading, sentences))
    rng = random.Random(f"{seed} {document.id}")  # a text seeds alike in every process
    anchors = [(i, s) for i, (_, sentences) in enumerate(sections) if len(sentences) > 1 for s in sentences]
    if len(sections) < 2:
        return []
    triplets = []
    for i, anchor in rng.sample(anchors, min(PER_ARTICLE, len(anchors))):
        heading, own = sections[i]
        positive = rng.choice([s for s in own if s != anchor])
        other, sentences = sections[rng.choice([j for j in range(len(sections)) if j != i])]
        # A sentence may stand in both sections, word for word.
        strange = [s for s in sentences if s not in (anchor, positive)]
        if strange:
            triplets.append(Triplet(anchor, positive, rng.choice(strange), document.title, heading, other))
    return triplets


def read_triplets(path: str | os.PathLike[str]) -> list[Triplet]:
    """Read a CSV file whose header names Sentence1 (the anchor), Sentence2 (its section) and Sentence3 (another)."""
    triplets = []
    for place, cells in read_table(Path(path), {name: (name,) for name in COLUMNS}, _ALSO_WRITTEN):
        if not all(cells[: len(COLUMNS)]):
            raise CorpusError(f"{place}: a sentence is empty: mend or remove the row")
        triplets.append(Triplet(*cells))
    if not triplets:
        raise CorpusError(f"{path}:2: the file holds no triplet: write one on a line below the header")
    return triplets


def write_triplets(path: str | os.PathLike[str], triplets: Iterable[Triplet], overwrite: bool = False) -> int:
    """Write triplets in the CSV format that `read_triplets` reads; the file is written atomically.

    Returns the number written. Raises a LikewiseError if the folder to write in is not there, or if likewise did not
    write the file that is there, unless `overwrite` is true.
    """
    count = 0
    with (
        written_result(Path(path), overwrite) as unfinished,
        unfinished.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow((*COLUMNS, *_ALSO_WRITTEN))
        for t in triplets:
            writer.writerow((t.anchor, t.positive, t.negative, t.article, t.section, t.other))
            count += 1
    return count
