"""A corpus prepared for training: read once, deduplicated, and memory mapped afterwards."""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout

from likewise.corpus.decoding import Source, digest_of
from likewise.corpus.files import Tick
from likewise.corpus.options import CorpusError, CorpusOptions
from likewise.corpus.report import CorpusReport
from likewise.corpus.sentences import kept_sentences
from likewise.corpus.sources import Spec, find_sources
from likewise.errors import counted
from likewise.runs.cache import cache_folder, made_in_cache
from likewise.runs.progress import Progress
from likewise.runs.whole_files import is_full_disk

if TYPE_CHECKING:
    import datasets

# A part of every cache key: raise it when the same files and options give other sentences.
FORMAT = 3
BATCH = 10_000  # sentences written at once
PARTITION = 1 << 22
"""Fingerprints compared at once; 150 MB with what sorting them takes."""

_DATA, _FACTS = "sentences.arrow", "corpus.json"
_UNFINISHED = "making-"


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

    def record(self) -> dict[str, Any]:
        """Return the facts for the record of a run."""
        facts = {"sources": list(self.sources), "sentences": len(self), "sha256": self.sha256}
        return facts | {"report": self.report.to_dict()}


def default_cache() -> Path:
    """Return the folder of prepared corpora, in $LIKEWISE_CACHE if set, or in ~/.cache/likewise."""
    return cache_folder() if os.environ.get("LIKEWISE_CACHE") else cache_folder() / "corpus"


def prepare(
    spec: Spec,
    options: CorpusOptions | None = None,
    *,
    cache_dir: str | Path | None = None,
    progress: Progress | None = None,
    at_least: int = 1,
) -> PreparedCorpus:
    """Read a corpus into a memory mapped file, unless an earlier call has done so.

    The cache is keyed by the files' paths, sizes and times and by the options. Memory does not grow with the
    corpus; the disk needs about three times its text while it is made.

    Args:
        spec: a path, a glob, `bundled:wiki-sample`, or a list of these.
        options: rules of reading; the defaults of CorpusOptions.
        cache_dir: folder of prepared corpora; `default_cache()` if None.
        progress: shows the bytes read; nothing is shown if None.
        at_least: fewest sentences that will do, a batch's size for example.

    Raises:
        CorpusError: a file cannot be read, the disk is full, or fewer than `at_least` sentences are left.
    """
    options = options or CorpusOptions()
    sources = find_sources(spec, options, progress)
    root = Path(cache_dir).expanduser() if cache_dir is not None else default_cache()
    folder = root / _key(sources, options)
    corpus = _load(folder)
    if corpus is None:
        _remove_unfinished(made_in_cache(root))
        total = sum(source.size for source in sources)
        try:
            with (
                tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=root, ignore_cleanup_errors=True) as work,
                FileLock(Path(work) / "lock"),
                (progress or Progress(quiet=True)).bar("reading the corpus", total, unit="bytes") as bar,
            ):
                made = _make(Path(work), sources, options, bar.update)
                bar.update(total)
                if _load(folder) is None:  # another process may have made it meanwhile, and may be using it
                    shutil.rmtree(folder, ignore_errors=True)
                    made.rename(folder)
        except Exception as error:
            if is_full_disk(error):
                raise CorpusError(
                    f"{root}: the disk is full, and prepared text is kept there. Make room, or set LIKEWISE_CACHE to a "
                    "folder on another disk"
                ) from error
            raise
        corpus = _load(folder)
        if corpus is None:
            raise CorpusError(f"{folder}: the prepared corpus cannot be read back: is the disk full?")
    if len(corpus) < at_least:
        raise CorpusError(
            f"{corpus.sources[0]}:1: {counted(len(corpus), 'sentence')} left of "
            f"{counted(len(corpus.sources), 'file')}, and {at_least:,} are needed: give more text, a smaller batch, or "
            f"looser limits\n{corpus.report}"
        )
    return corpus


def _remove_unfinished(root: Path) -> None:
    """Remove the files of killed runs; those of a live run are locked."""
    for lock in root.glob(f"{_UNFINISHED}*/lock"):
        try:
            with FileLock(lock, timeout=0):
                shutil.rmtree(lock.parent, ignore_errors=True)
        except (Timeout, OSError):
            continue


def _key(sources: list[Source], options: CorpusOptions) -> str:
    files = []
    for source in sources:
        stat = source.path.stat()
        files.append([str(source.path.resolve()), stat.st_size, stat.st_mtime_ns])
    # A limit on archives changes no sentence.
    rules = {name: value for name, value in options.to_dict().items() if name != "max_expansion"}
    return hashlib.sha256(json.dumps([FORMAT, files, rules], sort_keys=True).encode()).hexdigest()[:32]


def _load(folder: Path) -> PreparedCorpus | None:
    """Return the corpus in a folder, None if there is no complete one."""
    try:
        facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
        import datasets  # takes seconds, and what is refused above needs none of it

        dataset = datasets.Dataset.from_file(str(folder / _DATA))
        del facts["report"]["read"]  # the sum of the others
        report = CorpusReport(**facts["report"])
    except (OSError, ValueError, KeyError, TypeError):  # pyarrow's errors are OSError and ValueError
        return None
    if len(dataset) != report.kept:
        return None
    return PreparedCorpus(dataset, report, facts["sha256"], tuple(facts["sources"]), folder / _DATA)


def _make(work: Path, sources: list[Source], options: CorpusOptions, tick: Tick) -> Path:
    """Write the sentences and the facts, and return their folder below `work`."""
    import pyarrow as pa  # slow, and needed only for a corpus that is really read

    report = CorpusReport()
    sentences = kept_sentences(sources, report, tick)
    columns = [("text", pa.string()), ("words", pa.int32()), ("file", pa.int32()), ("line", pa.int64())]
    schema = pa.schema(columns)
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
    made = work / "made"
    made.mkdir()
    names = [str(source.path) for source in sources]
    again = repeated(fingerprints) if options.deduplicate else None
    sha256 = _write_without(first, made / _DATA, again, report, names)
    facts = {"report": report.to_dict(), "sha256": sha256, "sources": names, "options": options.to_dict()}
    (made / _FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")
    return made


def repeated(path: Path, partition: int = PARTITION) -> np.ndarray:
    """Return which fingerprints (16 bytes each) of a file came before in it, as a memory mapped bool array.

    They have 128 bits, so that two different sentences share one with a chance below 1e-20 in a corpus of a billion.
    A part of them, `partition` or so, is compared at a time, so that memory does not grow with the corpus.
    """
    found = np.memmap(path, dtype="<u8", mode="r").reshape(-1, 2)
    flags = np.memmap(path.with_name("repeated"), dtype=bool, mode="w+", shape=len(found))
    parts = -(-len(found) // partition)
    for part in range(parts):
        # Equal sentences have equal fingerprints, so they meet in one part.
        here = [
            np.flatnonzero(found[start : start + partition, 0] % np.uint64(parts) == part) + start
            for start in range(0, len(found), partition)
        ]
        rows = np.concatenate(here)
        low, high = found[rows].T
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
