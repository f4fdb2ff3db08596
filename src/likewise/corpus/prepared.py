"""A corpus made ready for training: read once, deduplicated, and mapped from disk ever after."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from likewise.corpus.arrow import write_sentences, write_without
from likewise.corpus.dedupe import Fingerprints
from likewise.corpus.errors import CorpusError
from likewise.corpus.options import CorpusOptions
from likewise.corpus.report import CorpusReport
from likewise.corpus.sentences import kept_sentences
from likewise.corpus.sources import Source, Spec, find_sources
from likewise.runs.cache import cache_folder

if TYPE_CHECKING:
    import datasets

Progress = Callable[[int, int], None]
"""Told (bytes done, bytes in all) of the files on disk."""

# A part of every cache key: raise it when the same files and options give other sentences.
FORMAT = 2

_DATA, _FACTS = "sentences.arrow", "corpus.json"


@dataclass(frozen=True)
class PreparedCorpus:
    """Sentences on disk, in the order of the corpus.

    Attributes:
        dataset: memory mapped, columns `sentence` (string) and `words` (int32, counted by white space).
        report: what was read, kept and dropped.
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

    def require(self, at_least: int) -> Self:
        """Give the corpus itself if it has that many sentences.

        Raises:
            CorpusError: it has fewer; the message holds the report.
        """
        if len(self) < at_least:
            raise CorpusError(
                f"{self.sources[0]}:1: {len(self):,} sentences are left of {len(self.sources)} file(s), and "
                f"{at_least:,} are needed: give more text, a smaller batch, or looser limits\n{self.report}"
            )
        return self


def default_cache() -> Path:
    """Give the folder of prepared corpora: LIKEWISE_CACHE if set, else ~/.cache/likewise/corpus."""
    return cache_folder() if os.environ.get("LIKEWISE_CACHE") else cache_folder() / "corpus"


def prepare(
    spec: Spec,
    options: CorpusOptions | None = None,
    *,
    cache_dir: str | Path | None = None,
    progress: Progress | None = None,
    at_least: int = 1,
) -> PreparedCorpus:
    """Read a corpus into a memory mapped file, or find it there from an earlier call.

    What is found again is keyed by the files' paths, sizes and times and by the options. Memory does not grow
    with the corpus; the disk needs about three times its text while it is made.

    Args:
        spec: a path, a glob, `bundled:wiki-sample`, or a list of these.
        options: how to read; the defaults of CorpusOptions.
        cache_dir: where prepared corpora are kept; `default_cache()` if None.
        progress: called now and then with (bytes done, bytes in all), and once at the end.
        at_least: fewest sentences that will do, a batch's size for example.

    Raises:
        CorpusError: a file cannot be read as asked, or fewer than `at_least` sentences are left.
    """
    options = options or CorpusOptions()
    sources = find_sources(spec, options)
    root = Path(cache_dir).expanduser() if cache_dir is not None else default_cache()
    folder = root / _key(sources, options)
    total = sum(source.size for source in sources)
    corpus = _load(folder)
    if corpus is None:
        root.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix="making-", dir=root))
        try:
            _make(work, sources, options, (lambda done: progress(done, total)) if progress else None)
            if _load(folder) is None:  # another process may have made it meanwhile, and may be using it
                shutil.rmtree(folder, ignore_errors=True)
                work.rename(folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        corpus = _load(folder)
        if corpus is None:
            raise CorpusError(f"{folder}: the prepared corpus cannot be read back: is the disk full?")
    if progress is not None:
        progress(total, total)
    return corpus.require(at_least)


def _key(sources: list[Source], options: CorpusOptions) -> str:
    files = []
    for source in sources:
        stat = source.path.stat()
        files.append([str(source.path.resolve()), stat.st_size, stat.st_mtime_ns])
    facts = json.dumps([FORMAT, files, options.to_dict()], sort_keys=True)
    return hashlib.sha256(facts.encode()).hexdigest()[:32]


def _load(folder: Path) -> PreparedCorpus | None:
    """Give what the folder holds, None where it holds nothing whole."""
    try:
        facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
        import datasets  # takes seconds, and what is refused above needs none of it

        dataset = datasets.Dataset.from_file(str(folder / _DATA))
        report = CorpusReport.from_dict(facts["report"])
    except (OSError, ValueError, KeyError, TypeError):  # pyarrow's errors are OSError and ValueError
        return None
    if len(dataset) != report.kept:
        return None
    return PreparedCorpus(dataset, report, facts["sha256"], tuple(facts["sources"]), folder / _DATA)


def _make(work: Path, sources: list[Source], options: CorpusOptions, tick: Callable[[int], None] | None) -> None:
    """Write the sentences and the facts into `work`; temporary files have a folder of their own."""
    temporary = work / "temporary"
    temporary.mkdir()
    report = CorpusReport()
    first = temporary / "first.arrow"
    fingerprints = Fingerprints(temporary) if options.deduplicate else None
    write_sentences(first, kept_sentences(sources, options, report, tick), fingerprints)
    repeated = fingerprints.repeated() if fingerprints is not None else None
    sha256 = write_without(first, work / _DATA, repeated, report, [str(source.path) for source in sources])
    del repeated  # the mapped file is let go before it is removed
    shutil.rmtree(temporary)
    facts = {
        "report": report.to_dict(),
        "sha256": sha256,
        "sources": [str(source.path) for source in sources],
        "options": options.to_dict(),
    }
    (work / _FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")
