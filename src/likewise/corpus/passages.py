"""Reading of passages: the paragraphs of any text with their sentences and titles, and the pairs that they provide."""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeVar

from likewise.corpus.clean_text import unrepeated
from likewise.corpus.corpus_options import CorpusError, CorpusOptions, Spec
from likewise.corpus.counts import CorpusReport
from likewise.corpus.formats import Source
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.sentence_splitter import joined
from likewise.corpus.sources import find_sources, tell
from likewise.corpus.words import DividedText, word_count
from likewise.errors import counted
from likewise.runs.progress import Progress

_T = TypeVar("_T")
LONGEST = 180
"""Words of a passage; a longer paragraph is divided, as encoders read 128 to 512 word pieces."""

_STAYS = 0.1  # share of sentences that stay in the rest of their passage, as in Lee et al.
_CLAUSES = re.compile(r"(?<=[;:])\s+")
_TITLES = ("title", "question", "heading", "headline", "subject", "name")


@dataclass(frozen=True)
class Passage:
    """A paragraph, or a part of a long one.

    Attributes:
        sentences: Sentences in order.
        title: Title or heading above it, "" without one.
    """

    sentences: tuple[str, ...]
    title: str = ""

    @property
    def text(self) -> str:
        """The sentences in one string."""
        return joined(self.sentences)


@dataclass(frozen=True)
class OfferedPair:
    """A pair of related texts from the corpus.

    Attributes:
        first, second: Texts of the pair; `first` is the shorter one, like a query.
        kind: "title", "question", "rest" (a sentence and the rest of its passage) or "deletion".
        passage: Number of the passage that `second` is from.
    """

    first: str
    second: str
    kind: str
    passage: int


def read_passages(
    spec: Spec,
    options: CorpusOptions | None = None,
    most: int = 200_000,
    seed: int = 1,
    progress: Progress | None = None,
    report: CorpusReport | None = None,
) -> list[Passage]:
    """Return the passages of a corpus in the order of its files.

    A passage is a paragraph of plain text, or a line if lines are passages; a paragraph of Markdown with its heading; a
    paragraph of a field in JSONL, CSV and Parquet, with the row's title or question; or a paragraph of a section in
    articles and MediaWiki dumps. With `options.deduplicate`, repeated passages are dropped.

    Args:
        spec: Path, folder, glob pattern, `bundled:wiki-sample`, or a list of these.
        options: Options of reading; passages of fewer than `min_words` words are dropped.
        most: Maximum number of passages; a larger corpus is sampled.
        seed: Random seed of the sample.
        progress: Progress as in `find_sources`, which also reports skipped text.
        report: Report that counts kept and dropped passages.
    """
    options, report = options or CorpusOptions(), report or CorpusReport()
    sources = find_sources(spec, options, progress, report)
    reported = len(report.messages)
    rng = random.Random(seed)
    selected: list[tuple[int, Passage]] = []
    placed = _passages(sources, options)
    if options.deduplicate:
        placed = unrepeated(placed, lambda item: item[2].text, repeated=lambda item: item[0].drop("duplicate", item[1]))
    for count, (_, _, passage) in enumerate(placed):
        report.kept = count + 1
        if len(selected) < most:
            selected.append((count, passage))
        elif (place := rng.randrange(count + 1)) < most:
            selected[place] = (count, passage)
    if progress is not None:
        tell(report, progress, reported)
        if report.dropped:
            progress.tell(f"passages\n{report}")
        if report.kept > len(selected):
            progress.tell(f"{len(selected):,} of {report.kept:,} passages are used, drawn at random")
    if not selected:
        raise CorpusError(
            f"{sources[0].path}:1: no passage of {counted(options.min_words, 'word')} or more in "
            f"{counted(len(sources), 'file')}: give more text, or lower min_words"
        )
    return [passage for _, passage in sorted(selected, key=itemgetter(0))]


def _passages(sources: list[Source], options: CorpusOptions) -> Iterator[tuple[Source, int, Passage]]:
    """Yield each passage with its file and its line; the report counts empty and too short passages."""
    for source in sources:
        for paragraph in read_paragraphs(source, split_lines=options.split == "auto"):
            titles: list[object] = [paragraph.title]
            if paragraph.row is not None:
                titles = [paragraph.row.get(name) for name in _TITLES if name != options.field]
            title = next((text for text in titles if isinstance(text, str) and text.strip()), "")
            line = paragraph.sentences[0][0] if paragraph.sentences else 0
            for part in parted((text for _, text in paragraph.sentences), word_count, LONGEST):
                words = sum(map(word_count, part))
                if words >= options.min_words:
                    yield source, line, Passage(tuple(part), " ".join(title.split()))
                else:
                    source.drop("too short" if words else "empty", line)


def offered_pairs(passages: Sequence[Passage], *, seed: int = 1) -> list[OfferedPair]:
    """Return the pairs of texts that passages offer, in the order of the passages.

    Of each passage: its title with its text, of the first one below it; a question in it with what follows; a random
    sentence of five words or more with the rest of the passage, the inverse cloze task (Lee et al. 2019, section 4), in
    which one sentence of ten stays there. A passage of one sentence is divided at semicolons and colons; one without
    these gives its text with a tenth to a third of its words deleted. A passage without a sentence,
    or of one word, offers none.
    """
    rng = random.Random(seed)
    pairs: list[OfferedPair] = []
    titles: set[str] = set()
    for number, passage in enumerate(passages):
        if not passage.sentences:  # such as 'Yes.', which is none
            continue
        if passage.title not in ("", passage.text) and passage.title not in titles:
            pairs.append(OfferedPair(passage.title, passage.text, "title", number))
            titles.add(passage.title)
        for place, sentence in enumerate(passage.sentences[:-1]):
            if sentence.endswith("?"):
                pairs.append(OfferedPair(sentence, joined(passage.sentences[place + 1 :]), "question", number))
        pieces = _pieces(passage)
        long = [place for place, piece in enumerate(pieces) if word_count(piece) >= 5]
        if len(pieces) > 1 and long:
            place = rng.choice(long)
            stays = rng.random() < _STAYS
            rest = [piece for i, piece in enumerate(pieces) if stays or i != place]
            pairs.append(OfferedPair(pieces[place], " ".join(rest), "rest", number))
        else:
            share = rng.uniform(0.1, 1 / 3)
            shortened = DividedText.of(passage.text).without_share(share, rng)
            if shortened != passage.text:
                pairs.append(OfferedPair(shortened, passage.text, "deletion", number))
    return pairs


def _pieces(passage: Passage) -> Sequence[str]:
    """Return the sentences of a passage; the clauses of a single sentence, as in a list, where it has several."""
    if len(passage.sentences) > 1:
        return passage.sentences
    clauses: list[str] = []
    for clause in _CLAUSES.split(passage.text):
        if clauses and word_count(clause) < 4:
            clauses[-1] += f" {clause}"
        else:
            clauses.append(clause)
    return clauses


def parted(items: Iterable[_T], size_of: Callable[[_T], int], most: int) -> Iterator[list[_T]]:
    """Yield items in parts of which the sizes sum to `most` at most; a larger item is a part by itself."""
    part: list[_T] = []
    total = 0
    for item in items:
        size = size_of(item)
        if part and total + size > most:
            yield part
            part, total = [], 0
        part.append(item)
        total += size
    if part:
        yield part
