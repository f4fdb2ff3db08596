"""Reading of sentences from files: split, cleaned and measured, one after the other."""

import random
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import itemgetter

from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.counts import CorpusReport
from likewise.corpus.files import Tick
from likewise.corpus.lines_and_rows import Source, text_layout, text_lines
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.sentence_splitter import Placed, word_count
from likewise.corpus.sources import Spec, find_sources
from likewise.errors import counted

_SIGN = re.compile(r"\w")


@dataclass(frozen=True)
class Sentence:
    """A sentence that was kept, and where it begins."""

    text: str
    words: int
    file: int  # index into the sources
    line: int


def read_sentences(
    spec: Spec, options: CorpusOptions | None = None, report: CorpusReport | None = None
) -> Iterator[str]:
    """Yield the sentences of a corpus, in the order of its files (sorted by path) and their lines.

    Equal sentences are all given, whatever `options.deduplicate` says: to know them takes a memory that
    grows. `prepare` drops them. The report is filled while sentences are drawn.

    Raises:
        CorpusError: a file cannot be read, or no sentence is left at the end.
    """
    options = options or CorpusOptions()
    report = report if report is not None else CorpusReport()
    for sentence in kept_sentences(find_sources(spec, options), report):
        yield sentence.text


def kept_sentences(sources: list[Source], report: CorpusReport, tick: Tick | None = None) -> Iterator[Sentence]:
    """Yield the sentences of sources, and call `tick` with the bytes read so far."""
    before = 0
    for index, source in enumerate(sources):
        moved = None if tick is None else lambda done, before=before: tick(before + done)
        source = replace(source, report=report, tick=moved)
        shortest, longest = source.options.min_words, source.options.max_words
        for line, text in _candidates(source):
            words, count = text.split(), word_count(text)
            if not _SIGN.search(text):
                source.drop("empty", line)
            elif count < shortest:
                source.drop("too short", line)
            elif longest is not None and count > longest:
                source.drop("too long", line)
            else:
                report.kept += 1
                yield Sentence(" ".join(words), count, index, line)
        before += source.size
    if not report.kept:
        raise CorpusError(
            f"{sources[0].path}:1: no sentence of {counted(len(sources), 'file')} is kept: see the reasons, and "
            f"then the options split, min_words and encoding:\n{report}"
        )


def _candidates(source: Source) -> Iterator[Placed]:
    """Yield the sentences of a file before the length limits."""
    kind: str = source.kind
    if kind == "text":
        kind = "line" if text_layout(source) == "line" else "prose"
    source.report.files[str(source.path)] = kind
    if kind != "line":
        for paragraph in read_paragraphs(source):
            yield from paragraph.sentences
    else:
        for number, pieces in groupby(text_lines(source), key=itemgetter(0)):
            held = [text for _, text in islice(pieces, 2)]
            if len(held) == 1:
                yield number, held[0]
            else:  # longer than what is held of a line at once
                source.drop("too long", number)


def without_words(words: Sequence[str], positions: Collection[int]) -> str:
    """Leave the words at `positions` out, and join the others with spaces.

    >>> without_words("It was of 800km .".split(), (2, 3))
    'It was .'
    """
    return " ".join(word for i, word in enumerate(words) if i not in positions)


def without_share_of_words(text: str, share: float, rng: random.Random) -> str:
    """Return a text without a random share of its words: at least one of several goes.

    >>> without_share_of_words("one two three four five", 0.2, random.Random(0))
    'one two three five'
    """
    words = text.split()
    if len(words) <= 1:
        return text
    return without_words(words, set(rng.sample(range(len(words)), max(1, round(share * len(words))))))
