"""A corpus prepared for training: read once, deduplicated, and memory mapped afterwards."""

import hashlib
import shutil
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.counts import CorpusReport
from likewise.corpus.files import Tick
from likewise.corpus.lines_and_rows import Source, digest_of
from likewise.corpus.sentences import kept_sentences
from likewise.corpus.sources import Spec, find_sources, tell
from likewise.errors import counted
from likewise.runs.cache import cached
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record, read_json, write_json

if TYPE_CHECKING:
    import datasets

# A part of every cache key: raise it when the same files and options give other sentences.
FORMAT = 4
BATCH = 10_000  # sentences written at once
PARTITION = 1 << 22
"""Fingerprints compared at once; 150 MB with what sorting them takes."""

_DATA, _FACTS = "sentences.arrow", "corpus.json"


@dataclass(frozen=True)
class PreparedCorpus:
    """Sentences on disk, in the order of the corpus.

    Attributes:
        dataset: memory mapped, columns `sentence` (string) and `words` (int32, counted by white space).
        report: counts of what was read, kept and dropped.
        sha256: of the kept sentences in order, each with a line end, in UTF-8: the same sentences give the
            same hash, whatever files they came from.
        sources: the files, sorted.
        path: the Arrow file.
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
    spec: Spec,
    options: CorpusOptions | None = None,
    *,
    progress: Progress | None = None,
    at_least: int = 1,
) -> PreparedCorpus:
    """Read a corpus into a memory mapped file, unless an earlier call has done so.

    The cache is keyed by the files' paths, sizes and times and by the options. Memory does not grow with the
    corpus; the disk needs about three times its text while it is made.

    Args:
        spec: a path, a glob, `bundled:wiki-sample`, or a list of these.
        options: rules of reading; the defaults of CorpusOptions.
        progress: shows the bytes read; nothing is shown if None.
        at_least: fewest sentences that will do, a batch's size for example.

    Raises:
        CorpusError: a file cannot be read, the disk is full, or fewer than `at_least` sentences are left.
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
            f"{corpus.sources[0]}: {counted(len(corpus), 'sentence')} could be used of "
            f"{counted(len(corpus.sources), 'file')}, and a batch needs {at_least:,}: give more text, a smaller "
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
    """Return the corpus in a folder."""
    import datasets  # takes seconds, and what is refused above needs none of it

    facts = read_json(folder / _FACTS)
    del facts["report"]["read"]  # the sum of the others
    dataset, report = datasets.Dataset.from_file(str(folder / _DATA)), CorpusReport(**facts["report"])
    return PreparedCorpus(dataset, report, facts["sha256"], tuple(facts["sources"]), folder / _DATA)


def _make(folder: Path, sources: list[Source], options: CorpusOptions, tick: Tick) -> None:
    """Write the sentences and the facts into a folder."""
    import pyarrow as pa  # slow, and needed only for a corpus that is really read

    report = CorpusReport()
    sentences = kept_sentences(sources, report, tick)
    columns = [("text", pa.string()), ("words", pa.int32()), ("file", pa.int32()), ("line", pa.int64())]
    schema = pa.schema(columns)
    work = folder / "work"
    work.mkdir()
    first, fingerprints = work / "first.arrow", work / "fingerprints"
    with (
        pa.OSFile(str(first), "wb") as sink,
        pa.ipc.new_stream(sink, schema) as writer,
        fingerprints.open("wb") as digests,
    ):
        while batch := list(islice(sentences, BATCH)):
            rows = {name: [getattr(sentence, name) for sentence in batch] for name in schema.names}
            writer.write_batch(pa.record_batch(rows, schema=schema))
            digests.write(b"".join(map(digest_of, rows["text"])))
    names = [str(source.path) for source in sources]
    again = repeated(fingerprints) if options.deduplicate else None
    sha256 = _write_without(first, folder / _DATA, again, report, names)
    facts = {"report": report.to_dict(), "sha256": sha256, "sources": names, "options": options.to_dict()}
    write_json(folder / _FACTS, facts)
    shutil.rmtree(work)


def repeated(path: Path, partition: int = PARTITION) -> np.ndarray:
    """Return which fingerprints (16 bytes each) of a file came before in it, as a memory mapped bool array.

    They have 128 bits, so that two different sentences share one with a chance below 1e-20 in a corpus of a billion.
    A part of them, `partition` or so, is compared at a time, so that memory does not grow with the corpus.
    """
    fingerprints = np.memmap(path, dtype="<u8", mode="r").reshape(-1, 2)
    flags = np.memmap(path.with_name("repeated"), dtype=bool, mode="w+", shape=len(fingerprints))
    parts = -(-len(fingerprints) // partition)
    for part in range(parts):
        # Equal sentences have equal fingerprints, so they meet in one part.
        here = [
            np.flatnonzero(fingerprints[start : start + partition, 0] % np.uint64(parts) == part) + start
            for start in range(0, len(fingerprints), partition)
        ]
        rows = np.concatenate(here)
        low, high = fingerprints[rows].T
        order = np.lexsort((high, low))  # stable: the first of equal ones is the one that came first
        same = (np.diff(low[order]) == 0) & (np.diff(high[order]) == 0)
        flags[rows[order[1:][same]]] = True
    return flags


def _write_without(first: Path, path: Path, repeated: np.ndarray | None, report: CorpusReport, names: list[str]) -> str:
    """Copy sentences and words without those that are marked as repeated; return the SHA-256 of the corpus."""
    import pyarrow as pa

    digest = hashlib.sha256()
    begin = 0
    schema = pa.schema([("sentence", pa.string()), ("words", pa.int32())])
    with (
        pa.memory_map(str(first)) as source,
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_stream(sink, schema) as writer,
    ):
        for batch in pa.ipc.open_stream(source):
            end = begin + batch.num_rows
            if repeated is not None and (again := np.array(repeated[begin:end])).any():
                for row in batch.filter(pa.array(again)).select(["file", "line"]).to_pylist():
                    report.kept -= 1
                    report.drop("duplicate", names[row["file"]], row["line"])
                batch = batch.filter(pa.array(~again))
            begin = end
            if batch.num_rows:
                digest.update(("\n".join(batch["text"].to_pylist()) + "\n").encode())
                writer.write_batch(pa.record_batch([batch["text"], batch["words"]], schema=schema))
    return digest.hexdigest()
