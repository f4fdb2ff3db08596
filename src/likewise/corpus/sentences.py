"""Reading of sentences from files: split, cleaned and measured, one after the other."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from likewise.corpus.decoding import article_parts, field_text, read_rows
from likewise.corpus.files import Tick
from likewise.corpus.options import CorpusError, CorpusOptions
from likewise.corpus.plain import text_sentences
from likewise.corpus.report import CorpusReport
from likewise.corpus.rows import READERS
from likewise.corpus.sources import Source, Spec, find_sources
from likewise.corpus.splitting import paragraphs_of, sentences_of
from likewise.corpus.wiki import Sections, is_sentence_like, read_dump

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
    for sentence in kept_sentences(find_sources(spec, options), options, report):
        yield sentence.text


def kept_sentences(
    sources: list[Source], options: CorpusOptions, report: CorpusReport, tick: Tick | None = None
) -> Iterator[Sentence]:
    """Yield the sentences of sources, and call `tick` with the bytes read so far."""
    shortest, longest = options.min_words, options.max_words or 1 << 62
    before = 0
    for index, source in enumerate(sources):
        name = str(source.path)
        moved = None if tick is None else lambda done, before=before: tick(before + done)
        for line, text in _candidates(source, options, report, moved):
            report.read += 1
            parts = text.split()
            if len(parts) < shortest or not _SIGN.search(text):
                report.drop("too short" if _SIGN.search(text) else "empty", name, line)
            elif len(parts) > longest:
                report.drop("too long", name, line)
            else:
                report.kept += 1
                yield Sentence(" ".join(parts), len(parts), index, line)
        before += source.size
    if not report.kept:
        raise CorpusError(
            f"{sources[0].path}:1: no sentence is left of {len(sources)} file(s); see the reasons, then "
            f"look at split, min_words and encoding:\n{report}"
        )


def read_articles(
    source: Source, options: CorpusOptions, report: CorpusReport, tick: Tick | None = None
) -> Iterator[tuple[int, str, str, Sections]]:
    """Yield (line, id, title, sections) of each article of a dump or an articles file."""
    if source.kind == "wiki":
        yield from read_dump(source.path, options, tick)
        return
    for line, row in read_rows(source.path, options, report, tick):
        yield line, *article_parts(source.path, line, row)


def _candidates(
    source: Source, options: CorpusOptions, report: CorpusReport, tick: Tick | None
) -> Iterator[tuple[int, str]]:
    """Yield (line, sentence) of a file before the length limits, and count losses."""
    name = str(source.path)
    report.files[name] = source.kind
    if source.kind == "text":
        yield from text_sentences(source.path, options, report, tick)
    elif source.kind in READERS:
        for line, row in READERS[source.kind](source.path, options, report, tick):
            text = field_text(source.path, line, row, options.field or "")
            for paragraph in paragraphs_of(text) or [""]:
                yield from ((line, sentence) for sentence in sentences_of(paragraph) or [""])
    else:
        for line, _, _, sections in read_articles(source, options, report, tick):
            for sentence in (s for _, paragraphs in sections for text in paragraphs for s in sentences_of(text)):
                if is_sentence_like(sentence):
                    yield line, sentence
                else:
                    report.read += 1
                    report.drop("markup", name, line)
