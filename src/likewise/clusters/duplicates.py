"""`likewise duplicates`: texts that say what an earlier one says, by vectors and by words, in groups."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.clusters.near import Repeats, repeats
from likewise.clusters.texts import KeptTexts, TextError, Unit, keep_texts, read_units
from likewise.clusters.words import difference, shared, wording
from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.given import GivenTexts, TextSource, given_texts
from likewise.errors import LikewiseError
from likewise.inference.engines.engine import EngineName, EnginePrecision
from likewise.runs.arguments import checked
from likewise.runs.job import check_target
from likewise.runs.options import OptionError
from likewise.runs.orderly_stop import orderly_stop
from likewise.runs.progress import Progress
from likewise.runs.whole_files import written_whole

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

THRESHOLD = 0.9
WORDS = 0.3
_EXAMPLES = 3
_PAIRS = 5000
_BELOW = 0.05
"""How far below the threshold examples are looked for."""


@dataclass(frozen=True)
class NearPair:
    """Two near texts, and the cosine of their vectors.

    Attributes:
        text: the later one.
        kept: the earlier one.
        reason: why they do not count as duplicates; "" if they do.
    """

    text: str
    kept: str
    cosine: float
    reason: str = ""


@dataclass(frozen=True)
class Duplicates:
    """The duplicates among texts, as `duplicates` finds them.

    Attributes:
        texts: how many were read.
        exact: of these, how many repeat an earlier one word for word; white space does not count.
        near: how many more say what an earlier one says.
        groups: of more than one text: positions in the order of reading, from 0, the one that is kept first. In the
            order of those that are kept.
        threshold: the least cosine that counts.
        above: pairs just above the threshold, which count.
        below: pairs just below it, which do not.
        apart: pairs above it which their words tell apart, the nearest first.
        reasons: how many texts are kept for their words alone, by reason.
        at_random: the cosine that one in a hundred pairs of texts drawn at random reaches; it depends on the encoder.
        by_threshold: how many near duplicates there would be, about, by other thresholds.
    """

    texts: int
    exact: int
    near: int
    groups: tuple[tuple[int, ...], ...]
    threshold: float
    above: tuple[NearPair, ...]
    below: tuple[NearPair, ...]
    apart: tuple[NearPair, ...]
    reasons: dict[str, int]
    at_random: float
    by_threshold: dict[float, int]

    @property
    def kept(self) -> int:
        """The number of texts that are left if one of each group is kept."""
        return self.texts - self.exact - self.near


@checked
def duplicates(
    texts: GivenTexts,
    *,
    model: SentenceTransformer | str | os.PathLike[str] = "bundled:minilm",
    out: str | os.PathLike[str] | None = None,
    keep_one: str | os.PathLike[str] | None = None,
    threshold: float = THRESHOLD,
    words: float = WORDS,
    corpus_options: CorpusOptions | None = None,
    engine: EngineName = "auto",
    precision: EnginePrecision = "fp32",
    seed: int = 1,
    quiet: bool = False,
) -> Duplicates:
    """Find the texts that say what an earlier one says.

    A text is a line of a list, a row of JSONL, CSV or Parquet, or a paragraph of prose. It is a duplicate of an earlier
    one that is kept if their vectors have a cosine of the threshold or more, and their words agree: they share some of
    them, and neither has a negation, a number, a name or an opposite that the other lacks. Of each group the first is
    kept. Vectors stay in the cache, so that another threshold takes seconds.

    Args:
        texts: files, folders, or patterns, as `index` takes them; in Python also texts: a list, a column, any iterable.
            Rows are mappings or a DataFrame.
        model: the encoder, or what `load` takes.
        out: the JSONL file of groups: for each the text that is kept, and its duplicates with their places and cosines.
        keep_one: a file for the texts that are kept: whole rows if it ends in .jsonl or .csv, otherwise one text on
            each line.
        threshold: the least cosine of duplicates, from -1 to 1.
        words: the least share of words that duplicates have in common; 0 looks at vectors alone, so
            that negations, numbers, names and opposites do not count either.
        corpus_options: how the files are read; `field` names the text of JSONL, CSV and Parquet rows.
        engine, precision: as in `load`.
        seed: fixes the cells in which more than 100,000 texts are compared.
        quiet: show nothing on standard error.

    Returns:
        Counts, groups, and pairs near the threshold to judge it by.

    Raises:
        CorpusError: a file cannot be read.
        LikewiseError: an option is out of range, or there are fewer than two texts.
    """
    if not -1 <= threshold <= 1:
        raise OptionError(f"threshold is {threshold}: give a cosine, for example {THRESHOLD}")
    if not 0 <= words <= 1:
        raise OptionError(f"words is {words}: give a share from 0 to 1")
    for target in (out, keep_one):
        if target is not None:
            check_target(target, "file")
    progress, given = Progress(quiet), given_texts(texts, corpus_options)
    kept = keep_texts(given, model=model, engine=engine, precision=precision, progress=progress)
    read = {Path(file).resolve() for file in kept.files if file}
    for target in (out, keep_one):
        if target is not None and Path(target).resolve() in read:
            raise OptionError(
                f"{os.fspath(target)} is one of the files that were read, and would be overwritten: name another one"
            )

    def reason(one: int, other: int) -> str:
        first, second = wording(kept.text(one)), wording(kept.text(other))
        return difference(first, second) or ("other words" if shared(first, second) < words else "")

    with orderly_stop(progress) as stop, progress.bar("comparing", kept.different) as bar:

        def advance(done: int) -> None:
            bar.advance(done)
            stop.check("while texts were compared; their vectors are kept")

        looks = (reason,) if words else ()
        found = repeats(kept.vectors, threshold, *looks, seed=seed, advance=advance)
    result = _summed(kept, found, threshold)
    if out is not None:
        with written_whole(Path(out)) as path, path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(group, ensure_ascii=False) + "\n" for group in _written(kept, found, result))
    if keep_one is not None:
        _write_kept(Path(keep_one), given, kept, result)
    return result


def _summed(kept: KeptTexts, found: Repeats, threshold: float) -> Duplicates:
    """Return the duplicates, with the pairs nearest to the threshold on both sides."""
    head = found.of[kept.number]  # (N,) the different text that each stands for
    order = np.argsort(kept.first[head], kind="stable")
    begins = np.flatnonzero(np.diff(head[order], prepend=-1))
    groups = []
    for group in np.split(order, begins[1:]):
        if len(group) > 1:
            groups.append(tuple(group.tolist()))
    near = found.of != np.arange(kept.different)
    others = np.flatnonzero(~near & (found.nearest >= 0))

    def pair(text: int, other: int, cosine: float, reason: str = "") -> NearPair:
        return NearPair(kept.text(text), kept.text(other), round(float(cosine), 4), reason)

    above = sorted(np.flatnonzero(near).tolist(), key=lambda one: (found.cosine[one], one))[:_EXAMPLES]
    close = others[(found.near[others] < threshold) & (found.near[others] >= threshold - _BELOW)]
    below = sorted(close.tolist(), key=lambda one: (-found.near[one], one))[:_EXAMPLES]
    rejected = {text: (other, cosine, why) for text, other, cosine, why in found.apart if not near[text]}
    apart = sorted(rejected.items(), key=lambda item: (-item[1][1], item[0]))
    shown: list[tuple[int, tuple[int, float, str]]] = []
    for kind in ("negation", "numbers", "opposites", "names", "other words"):  # one of each kind before a second
        shown += [one for one in apart if one[1][2] == kind][:2]
    told = set(rejected)
    levels = sorted({round(threshold + step / 100, 2) for step in (-10, -5, 3, 6) if threshold + step / 100 < 1})
    free = np.array([one not in told for one in range(kept.different)])
    return Duplicates(
        texts=len(kept),
        exact=len(kept) - kept.different,
        near=int(near.sum()),
        groups=tuple(groups),
        threshold=threshold,
        above=tuple(pair(one, found.of[one], found.cosine[one]) for one in above),
        below=tuple(pair(one, found.nearest[one], found.near[one]) for one in below),
        apart=tuple(pair(text, other, cosine, why) for text, (other, cosine, why) in shown),
        reasons=dict(Counter(why for _, _, why in rejected.values()).most_common()),
        at_random=round(_at_random(kept.vectors), 4),
        by_threshold={level: int((free & (found.near >= level)).sum()) for level in levels},
    )


def _at_random(vectors: np.ndarray) -> float:
    """Return the cosine that one in a hundred pairs drawn at random reaches, by vectors (S, D)."""
    if len(vectors) < 2:
        return 0.0
    rng = np.random.default_rng(0)
    first = rng.integers(0, len(vectors), _PAIRS)
    second = (first + rng.integers(1, len(vectors), _PAIRS)) % len(vectors)  # another one
    return float(np.quantile((vectors[first] * vectors[second]).sum(axis=1), 0.99))


def _written(kept: KeptTexts, found: Repeats, result: Duplicates) -> Iterator[dict[str, Any]]:
    """Yield the groups as they are written."""
    for head, *others in result.groups:
        yield {
            "kept": {"text": kept.text(int(kept.number[head])), **kept.place(head)},
            "duplicates": [
                {
                    "text": kept.text(number := int(kept.number[one])),
                    **kept.place(one),
                    "cosine": 1.0 if number == kept.number[head] else round(float(found.cosine[number]), 4),
                }
                for one in others
            ],
        }


def _write_kept(path: Path, given: TextSource, kept: KeptTexts, result: Duplicates) -> None:
    """Write what is left if the first of each group is kept: the texts are read again."""
    leave = np.zeros(len(kept), dtype=bool)
    for _, *others in result.groups:
        leave[others] = True
    with ExitStack() as stack:
        unfinished = stack.enter_context(written_whole(path))
        file = stack.enter_context(unfinished.open("w", encoding="utf-8", newline=""))
        table: csv.DictWriter[str] | None = None
        for unit, left_out in _together(read_units(given, Progress(quiet=True)), leave):
            if left_out:
                continue
            if path.suffix == ".csv":
                row = dict(unit.row or {"text": unit.text})
                if table is None:
                    table = csv.DictWriter(file, list(row), restval="", extrasaction="ignore")
                    table.writeheader()
                table.writerow(row)
            elif path.suffix == ".jsonl":
                row = dict(unit.row or {"text": unit.text} | ({"file": unit.file} if unit.file else {}))
                file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
            else:
                file.write(unit.text + "\n")


def _together(units: Iterator[Unit], leave: np.ndarray) -> Iterator[tuple[Unit, bool]]:
    try:
        yield from zip(units, leave.tolist(), strict=True)
    except ValueError as error:
        if isinstance(error, LikewiseError):
            raise
        raise TextError("the texts changed while they were compared: run the same command again") from None
