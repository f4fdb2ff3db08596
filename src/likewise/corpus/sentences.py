"""Files to sentences: read, split, cleaned and measured, one after the other."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from likewise.corpus.errors import CorpusError
from likewise.corpus.files import LINE_LIMIT, Tick, is_wide, numbered_lines, read_head
from likewise.corpus.options import CorpusOptions
from likewise.corpus.records import article_parts, field_text, read_rows
from likewise.corpus.report import CorpusReport
from likewise.corpus.sources import Source, Spec, find_sources
from likewise.corpus.splitting import Paragraph, is_prose, is_wrapped, paragraphs_of, sentence_spans
from likewise.corpus.wiki import is_markup, is_sentence_like, read_dump

SAMPLE_LINES = 500
"""How many lines of a file decide how it is split."""

_SIGN = re.compile(r"\w")
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000e-\u001f\u007f\u00ad\u200b\u200e\u200f\u2060\ufeff]"
)  # not joiners


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
    """Stream the sentences of a corpus, in the order of its files (sorted by path) and their lines.

    Equal sentences are all given, whatever `options.deduplicate` says: to know them takes a memory that grows.
    `prepare` drops them.

    Args:
        spec: a path, a glob, `bundled:wiki-sample`, or a list of these.
        options: how to read; the defaults of CorpusOptions.
        report: filled while the sentences are drawn.

    Raises:
        CorpusError: a file cannot be read as asked (before the first sentence where that can be seen from its
            beginning), or no sentence is left at the end.
    """
    options = options or CorpusOptions()
    report = report if report is not None else CorpusReport()
    for sentence in kept_sentences(find_sources(spec, options), options, report):
        yield sentence.text


def kept_sentences(
    sources: list[Source], options: CorpusOptions, report: CorpusReport, tick: Tick | None = None
) -> Iterator[Sentence]:
    """As `read_sentences`, from files already looked at; `tick` is told the bytes done over all of them."""
    shortest, longest = options.min_words, options.max_words or 1 << 62
    before = 0
    for index, source in enumerate(sources):
        name = str(source.path)
        moved = None if tick is None else _shifted(tick, before)
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
            f"no sentence is left of {len(sources)} file(s), first {sources[0].path}:1:\n{report}"
        )


def _shifted(tick: Tick, by: int) -> Tick:
    return lambda done: tick(by + done)


def _candidates(
    source: Source, options: CorpusOptions, report: CorpusReport, tick: Tick | None
) -> Iterator[tuple[int, str]]:
    """Give (line, sentence) of a file before any measuring, and count what is lost on the way."""
    name = str(source.path)

    def lost_markup(line: int) -> None:
        report.read += 1
        report.drop("markup", name, line)

    report.files[name] = source.kind
    if source.kind == "text":
        yield from _from_text(source.path, options, report, tick)
    elif source.kind == "wiki":
        for line, _, _, sections in read_dump(source.path, options.encoding, tick, lost_markup):
            for _, paragraphs in sections:
                for text in paragraphs:
                    yield from ((line, sentence) for sentence in split_paragraph(text))
    else:
        watch = _Undecodable(source.path, options.encoding, report)
        for line, row in read_rows(source.path, options.encoding, tick):
            if watch.seen(line, row is not None):
                continue
            if source.kind == "jsonl":
                text = _INVISIBLE.sub("", field_text(source.path, line, row, options.field or ""))
                texts = paragraphs_of(text) or [""]
            else:
                _, _, sections = article_parts(source.path, line, row)
                texts = [text for _, paragraphs in sections for text in paragraphs]
            for text in texts:
                if source.kind == "articles" and not is_sentence_like(text):
                    lost_markup(line)
                elif text:
                    yield from ((line, sentence) for sentence in split_paragraph(text))
                else:
                    yield line, ""
        watch.end()


def split_paragraph(text: str) -> Iterator[str]:
    """Give the sentences of one paragraph."""
    for begin, end in sentence_spans(text):
        yield text[begin:end].strip()


def text_layout(path: Path, options: CorpusOptions) -> tuple[bool, bool]:
    """Tell (is it prose, are its lines wrapped) of a plain text file, from its first lines and `options.split`."""
    codec = "utf-8" if is_wide(options.encoding) else options.encoding
    head = read_head(path, options.encoding).decode(codec, "replace")
    lines = [" ".join(line.split()) for line in head.split("\n")]
    if len(lines) > 1:
        lines.pop()  # it may be cut
    lines = lines[:SAMPLE_LINES]
    prose = options.split == "prose" or (options.split == "auto" and is_prose(lines))
    return prose, prose and is_wrapped(lines)


def text_lines(
    path: Path, options: CorpusOptions, report: CorpusReport, tick: Tick | None = None
) -> Iterator[tuple[int, str, int]]:
    """Give (line number, text, bytes) of each line, the undecodable ones counted and left out."""
    codec = "utf-8" if is_wide(options.encoding) else options.encoding
    watch = _Undecodable(path, options.encoding, report)
    for number, raw in numbered_lines(path, options.encoding, tick):
        try:
            text: str | None = raw.decode(codec)
        except UnicodeDecodeError:
            text = None
        if text is None or not raw.isspace():
            watch.seen(number, text is not None)
        if text is not None:
            yield number, text if text.isascii() else _INVISIBLE.sub("", text), len(raw)
    watch.end()


def _from_text(
    path: Path, options: CorpusOptions, report: CorpusReport, tick: Tick | None
) -> Iterator[tuple[int, str]]:
    prose, wrapped = text_layout(path, options)
    report.files[str(path)] = "prose" if prose else "line"
    lines = text_lines(path, options, report, tick)
    if not prose:
        over = 0  # the number of a line that came in pieces and was dropped
        for number, text, size in lines:
            if number == over:
                continue
            if size > LINE_LIMIT // 2 and not text.endswith("\n"):
                over = number
                report.read += 1
                report.drop("too long", str(path), number)
            else:
                yield number, text
        return
    paragraph = Paragraph()
    last = 0
    for number, text, _ in lines:
        text = " ".join(text.split())
        if is_markup(text):
            report.read += 1
            report.drop("markup", str(path), number)
            text = ""
        if not text or (not wrapped and number != last):
            yield from paragraph.end()
        if text:
            yield from paragraph.add(number, text)
        last = number
    yield from paragraph.end()


class _Undecodable:
    """Counts lines that are no text in the encoding, and gives up on a file where they are half or more."""

    def __init__(self, path: Path, encoding: str, report: CorpusReport) -> None:
        self._path, self._encoding, self._report = path, encoding, report
        self._good = self._bad = self._first = 0
        self._check_at = 1000

    def seen(self, line: int, good: bool) -> bool:
        """Count a line; gives True for one that is to be left out."""
        if good:
            self._good += 1
        else:
            self._bad += 1
            self._first = self._first or line
            self._report.read += 1
            self._report.drop("undecodable", str(self._path), line)
        if self._good + self._bad == self._check_at:
            self._check_at *= 10
            self.end()
        return not good

    def end(self) -> None:
        """Raise a CorpusError where half of the lines or more could not be decoded."""
        if self._bad and self._bad >= self._good:
            cure = "latin-1" if self._encoding.lower().replace("-", "") in ("utf8", "ascii") else "utf-8"
            raise CorpusError(
                f"{self._path}:{self._first}: unreadable encoding: {self._bad} of {self._good + self._bad} lines are "
                f"not {self._encoding}: give the right one, for example --encoding {cure}"
            )
