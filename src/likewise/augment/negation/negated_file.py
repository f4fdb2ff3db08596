"""The file of the negations of a corpus: streamed, in parallel, and resumable."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO

from likewise.augment.negation import parser
from likewise.augment.negation.english import check_english
from likewise.augment.negation.rules import RULES_VERSION, Negation
from likewise.augment.negation.stream import BATCH_SIZE, negated_batches
from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.encodings import AUTO
from likewise.corpus.files import COMPRESSED, strict_lines
from likewise.corpus.known_formats import has_rows
from likewise.runs.job import Plan, open_job
from likewise.runs.options import OptionError
from likewise.runs.progress import Progress, orderly_stop

_OTHER_ENDINGS = (*COMPRESSED, ".csv", ".tsv", ".parquet", ".xlsx")


@dataclass
class NegationCounts:
    """The counts of a run over a corpus.

    Attributes:
        path: Path to the output file.
        total, negated: Number of sentences, and of sentences with a negation.
        rules, reasons: Number of negations by rule, and of other sentences by reason.
        parsed, cached, resumed: Number of sentences by the source of their negation: the parser, the cache, a stopped
            run.
    """

    path: Path
    total: int = 0
    negated: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    parsed: int = 0
    cached: int = 0
    resumed: int = 0

    def add(self, negation: Negation) -> None:
        """Count one sentence."""
        self.total += 1
        self.negated += negation.negation is not None
        if negation.negation is None:
            self.reasons[negation.reason or "unknown"] += 1
        else:
            self.rules[negation.rule or "unknown"] += 1


def negate_corpus(
    sources: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    model: str = parser.DEFAULT_MODEL,
    processes: int = 1,
    batch_size: int = BATCH_SIZE,
    overwrite: bool = False,
    cache: bool = True,
    quiet: bool = False,
) -> NegationCounts:
    """Write the negations of sentences to a JSONL file, in the same order.

    A stopped run resumes after its last complete line whose sentence still matches the input.

    Args:
        sources: Paths to text files (plain, .gz, .bz2, .zst or .xz) with one sentence per line, of which blank lines
            are skipped; or an iterable of sentences (str) and files (Path).
        out: Path to the JSONL file of rows {"sentence", "negation", "rule"} or {"sentence", "negation": null,
            "reason"}.
        model: Name or path of an installed spaCy model of English.
        processes: Number of processes that parse; 0 uses one per core from 2,048 sentences. With several processes, a
            script needs `if __name__ == "__main__":`.
        batch_size: Number of sentences that are parsed and written at a time.
        overwrite: Whether to discard the output of a stopped run.
        cache: Whether to read known negations from the cache, and to add new negations to it.
        quiet: Whether to print nothing.

    Raises:
        CorpusError: If a file is missing or damaged, or is not text with one sentence per line.
        OptionError: If an option is out of range.
        NotEnglishError: If the sentences are not English.
        MissingExtraError: If spaCy, lemminflect or the model is not installed.
        Stopped: After Ctrl-C; finished work is cached.
    """
    if processes < 0 or batch_size < 1:
        raise OptionError(f"processes must be 0 or more and batch_size 1 or more, not {processes} and {batch_size}")
    if Path(out).suffix.lower() in _OTHER_ENDINGS:
        raise OptionError(f"--out {out}: the output is JSONL, one row per sentence: give a name that ends in .jsonl")
    progress = Progress(quiet)
    sentences = check_english(_sentences(sources))
    plan = Plan("negate", {"model": parser.identity(model), "rules": RULES_VERSION})
    counts = NegationCounts(Path(out))
    with ExitStack() as stack:
        job = stack.enter_context(open_job(out, plan, overwrite=overwrite, kind="file"))
        stop = stack.enter_context(orderly_stop(progress))
        lines = stack.enter_context(job.result.open("r+b" if job.result.exists() else "w+b"))
        left = _resume(lines, sentences, counts)
        bar = stack.enter_context(progress.bar("negating the sentences", done=counts.resumed))
        batches = negated_batches(left, model=model, processes=processes, batch_size=batch_size, cache=cache)
        for done, parsed in stack.enter_context(closing(batches)):
            lines.write("".join(_line(negation) for negation in done).encode())
            lines.flush()
            for negation in done:
                counts.add(negation)
            counts.parsed += parsed
            counts.cached += len(done) - parsed
            bar.advance(len(done))
            stop.check(f"after {counts.total:,} sentences")
        lines.close()
        job.finish()
    return counts


def read_negations(path: str | Path) -> Iterator[Negation]:
    """Yield the negations of a file written by `negate_corpus`."""
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            yield _parse(line)


def _line(negation: Negation) -> str:
    record = {"sentence": negation.sentence, "negation": negation.negation}
    record |= {"reason": negation.reason} if negation.negation is None else {"rule": negation.rule}
    return json.dumps(record, ensure_ascii=False) + "\n"


def _parse(line: str | bytes) -> Negation:
    record = json.loads(line)
    return Negation(record["sentence"], record["negation"], record.get("reason"), record.get("rule"))


def _resume(lines: IO[bytes], sentences: Iterator[str], counts: NegationCounts) -> Iterator[str]:
    """Count the complete lines of a partial file that match this input, cut off the rest, return what is left.

    A line belongs while its sentence is the input's next one; from the first that differs on, the file was
    written for another input.
    """
    good = 0
    for line in lines:
        try:
            negation = _parse(line) if line.endswith(b"\n") else None
        except (ValueError, KeyError):
            negation = None
        sentence = next(sentences, None)
        if negation is None or negation.sentence != sentence:
            sentences = sentences if sentence is None else chain([sentence], sentences)
            break
        good += len(line)
        counts.add(negation)
        counts.resumed += 1
    lines.seek(good)
    lines.truncate()
    return sentences


def _sentences(sources: str | Path | Iterable[str | Path]) -> Iterator[str]:
    """Yield the sentences of files and of iterables, without blank ones."""
    if isinstance(sources, (str, Path)):
        sources = [Path(sources)]
    for item in sources:
        if isinstance(item, Path) and has_rows(item):
            raise CorpusError(f"{item}: a file of rows cannot be negated: give a text file with one sentence per line")
        lines = (line.rstrip("\r\n") for line in strict_lines(item, AUTO)) if isinstance(item, Path) else (item,)
        yield from (line for line in lines if line.strip())
