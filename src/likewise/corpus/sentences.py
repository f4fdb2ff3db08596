"""Sentences of files: split, cleaned and measured, one after the other; and prepared for training in one file."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.corpus.clean_text import unrepeated
from likewise.corpus.corpus_options import CorpusError, CorpusOptions, Spec
from likewise.corpus.counts import CorpusReport
from likewise.corpus.files import Tick
from likewise.corpus.formats import Source
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.sentence_splitter import Placed
from likewise.corpus.sources import find_sources, tell
from likewise.corpus.text_lines import text_layout, text_lines
from likewise.corpus.words import word_count
from likewise.errors import counted
from likewise.runs.cache import cached
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record, read_json, write_json

if TYPE_CHECKING:
    import datasets

_SIGN = re.compile(r"\w")
# A part of every cache key: raise it when the same files and options give other sentences.
FORMAT = 6
_BATCH = 10_000  # sentences written at once
_DATA, _FACTS = "sentences.arrow", "corpus.json"


@dataclass(frozen=True)
class Sentence:
    """A kept sentence and its place."""

    text: str
    words: int
    file: int  # index into the sources
    line: int


def read_sentences(
    spec: Spec, options: CorpusOptions | None = None, report: CorpusReport | None = None
) -> Iterator[str]:
    """Yield the sentences of a corpus, in the order of its files (sorted by path) and their lines.

    Repeated sentences are included, even with `options.deduplicate`, because deduplication takes memory; `prepare`
    drops them. The report is filled during the iteration.

    Raises:
        CorpusError: If a file cannot be read, or no sentence remains.
    """
    options = options or CorpusOptions()
    report = report if report is not None else CorpusReport()
    for sentence in selected_sentences(find_sources(spec, options), report):
        yield sentence.text


def selected_sentences(sources: list[Source], report: CorpusReport, tick: Tick | None = None) -> Iterator[Sentence]:
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
    if not report.read:
        raise CorpusError(
            f"{sources[0].path}:1: there is no text in {counted(len(sources), 'file')}, or only a header: give files "
            f"with text"
        )
    if not report.kept:
        raise CorpusError(
            f"{sources[0].path}:1: no sentence of {counted(len(sources), 'file')} can be used: see the reasons below, "
            f"and the options split, min_words and encoding:\n{report}"
        )


def _candidates(source: Source) -> Iterator[Placed]:
    kind = source.kind
    if source.holds == "text":
        kind = "line" if text_layout(source) == "line" else "prose"
    source.report.files[str(source.path)] = kind
    if kind != "line":
        for paragraph in read_paragraphs(source):
            yield from paragraph.sentences
    else:
        for number, pieces in groupby(text_lines(source), key=itemgetter(0)):
            first_pieces = [text for _, text in islice(pieces, 2)]
            if len(first_pieces) == 1:
                yield number, first_pieces[0]
            else:  # longer than what is held of a line at once
                source.drop("too long", number)


@dataclass(frozen=True)
class PreparedCorpus:
    """Sentences on disk, in the order of the corpus.

    Attributes:
        dataset: Memory-mapped dataset with the columns `sentence` (string) and `words` (int32, see `word_count`).
        report: Counts of read, kept and dropped sentences.
        sha256: Hash of the kept sentences in order, in UTF-8 with a line feed after each sentence; it does not depend
            on the files.
        sources: Sorted files.
        path: Path to the Arrow file.
    """

    dataset: "datasets.Dataset"
    report: CorpusReport
    sha256: str
    sources: tuple[str, ...]
    path: Path

    def __len__(self) -> int:
        return len(self.dataset)

    def record(self) -> Record:
        """Return the facts for the record of a run."""
        facts = {"sources": list(self.sources), "sentences": len(self), "sha256": self.sha256}
        return facts | {"report": self.report.to_dict()}


def prepare(
    spec: Spec, options: CorpusOptions | None = None, *, progress: Progress | None = None, at_least: int = 1
) -> PreparedCorpus:
    """Read a corpus into a memory mapped file, unless an earlier call has done so.

    The key of the cache consists of the files' paths, sizes and times, and of the options. A corpus does not have to
    fit in memory; deduplication takes about 100 bytes per sentence.

    Args:
        spec: Path, glob pattern, `bundled:wiki-sample`, or a list of these.
        options: Options of reading; by default the defaults of CorpusOptions.
        progress: Progress of the bytes read; None shows nothing.
        at_least: Minimum number of sentences, such as the batch size.

    Raises:
        CorpusError: If a file cannot be read, the disk is full, or fewer than `at_least` sentences remain.
    """
    options = options or CorpusOptions()
    seen = CorpusReport()
    sources = find_sources(spec, options, progress, seen)

    def make(folder: Path) -> None:
        total = sum(source.size for source in sources)
        with (progress or Progress(quiet=True)).bar("reading the corpus", total, unit="bytes") as bar:
            _make(folder, sources, options, bar.update)
            bar.update(total)

    corpus = _load(cached("corpus", _key(sources, options), make))
    corpus.report.notes = [*seen.notes, *corpus.report.notes]
    if progress is not None:
        tell(corpus.report, progress, len(seen.notes))
    if len(corpus) < at_least:
        raise CorpusError(
            f"{corpus.sources[0]}: {counted(len(corpus), 'sentence')} of {counted(len(corpus.sources), 'file')} can "
            f"be used, but a batch needs {at_least:,}: give more text, a smaller "
            f"batch_size, or looser limits\n{corpus.report}"
        )
    return corpus


def _key(sources: list[Source], options: CorpusOptions) -> list[object]:
    files = []
    for source in sources:
        stat = source.path.stat()
        files.append([str(source.path.resolve()), stat.st_size, stat.st_mtime_ns])
    # A limit on archives changes no sentence.
    rules = {name: value for name, value in options.to_dict().items() if name != "max_expansion"}
    return [FORMAT, files, rules]


def _load(folder: Path) -> PreparedCorpus:
    import datasets  # takes seconds, and what is refused above needs none of it

    facts = read_json(folder / _FACTS)
    del facts["report"]["read"]  # the sum of the others
    dataset, report = datasets.Dataset.from_file(str(folder / _DATA)), CorpusReport(**facts["report"])
    return PreparedCorpus(dataset, report, facts["sha256"], tuple(facts["sources"]), folder / _DATA)


def _make(folder: Path, sources: list[Source], options: CorpusOptions, tick: Tick) -> None:
    import pyarrow as pa  # slow, and needed only for a corpus that is really read

    report, digest = CorpusReport(), hashlib.sha256()
    names = [str(source.path) for source in sources]

    def drop(sentence: Sentence) -> None:
        report.kept -= 1
        report.drop("duplicate", names[sentence.file], sentence.line)

    sentences = selected_sentences(sources, report, tick)
    if options.deduplicate:
        sentences = unrepeated(sentences, attrgetter("text"), drop)
    schema = pa.schema([("sentence", pa.string()), ("words", pa.int32())])
    with pa.OSFile(str(folder / _DATA), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        while batch := list(islice(sentences, _BATCH)):
            texts = [sentence.text for sentence in batch]
            digest.update(("\n".join(texts) + "\n").encode())
            writer.write_batch(pa.record_batch([texts, [sentence.words for sentence in batch]], schema=schema))
    facts = {"report": report.to_dict(), "sha256": digest.hexdigest(), "sources": names, "options": options.to_dict()}
    write_json(folder / _FACTS, facts)
