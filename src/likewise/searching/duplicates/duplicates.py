"""`likewise duplicates`: groups of texts with the same meaning, by vectors and words."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.inputs import GivenTexts, TextSource, given_texts
from likewise.inference.engines.engine import EngineName, EnginePrecision
from likewise.runs.options import OptionError, checked
from likewise.runs.progress import Progress, orderly_stop
from likewise.runs.results import check_results, written_result
from likewise.runs.whole_files import Record
from likewise.searching.duplicates.encoded_texts import CachedTexts, TextError, Unit, keep_texts, read_units
from likewise.searching.duplicates.near import Repeats, repeats
from likewise.searching.duplicates.second_look import SecondLook
from likewise.searching.duplicates.word_differences import REASONS, same_words

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

THRESHOLD = 0.9
WORDS = 0.3
_NOT_WRITTEN = (".parquet", ".xlsx", ".xls", ".arrow", ".feather", ".docx", ".gz", ".bz2", ".xz", ".zst", ".zip")
_TABLES = (".csv", ".tsv")
_EXAMPLES = 3
_PAIRS = 5000
_SAMPLE = 500
_BELOW = 0.05
"""Distance below the threshold in which examples are searched."""


@dataclass(frozen=True)
class NearPair:
    """Two similar texts, and the cosine of their vectors.

    Attributes:
        text: Later text.
        kept: Earlier text.
        reason: Reason why they are not duplicates; "" if they are.
    """

    text: str
    kept: str
    cosine: float
    reason: str = ""


@dataclass(frozen=True)
class Duplicates:
    """The result of `duplicates`.

    Attributes:
        texts: Number of texts, including empty texts.
        empty: Number of empty texts, which are never duplicates.
        exact: Number of texts that equal an earlier text except for white space.
        near: Number of further texts that repeat the meaning of an earlier text.
        groups: Positions of the texts of each group, in the order of reading from 0; the first is the representative.
            Groups are sorted by their representatives.
        language: Language of most texts, "" if it cannot be detected. The lists of antonyms are English; in another
            language two texts are duplicates only if their words are equal, except for misspellings.
        threshold: Minimum cosine of duplicates.
        above: Pairs just above the threshold, which are duplicates.
        below: Pairs just below the threshold, which are not.
        apart: Pairs above the threshold that differ in a word, by descending cosine.
        reasons: Number of texts that are not duplicates because of a word, by reason.
        at_random: Cosine that one in a hundred random pairs of texts reaches; it depends on the encoder.
        skipped: Sentences on skipped input, and on input in another encoding.
        is_partial: Whether files or rows could not be read.
    """

    texts: int
    empty: int
    exact: int
    near: int
    groups: tuple[tuple[int, ...], ...]
    language: str
    threshold: float
    above: tuple[NearPair, ...]
    below: tuple[NearPair, ...]
    apart: tuple[NearPair, ...]
    reasons: dict[str, int]
    at_random: float
    skipped: tuple[str, ...] = ()
    is_partial: bool = False

    @property
    def kept(self) -> int:
        """Number of texts without duplicates."""
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
    overwrite: bool = False,
    quiet: bool = False,
) -> Duplicates:
    """Find texts that repeat the meaning of an earlier text.

    A text is a line of a list, a row of JSONL, CSV or Parquet, or a paragraph of prose. A text is a duplicate of an
    earlier representative if the cosine of their vectors reaches the threshold and their words agree: they share some
    words in the same order, and neither has a negation, a number, a name or an antonym that the other lacks. Texts of
    several sentences are compared again without their common sentences, and long texts piece by piece, so that the part
    that the model truncates is compared as well. The first text of each group is its representative. Empty texts are
    never duplicates, and texts of symbols alone are duplicates only of the same symbols. Vectors are cached, so that
    another threshold takes seconds.

    Args:
        texts: Paths to files, folders, or patterns, as in `index`; in Python also texts (a list, a column or any
            iterable) or rows (mappings or a DataFrame).
        model: Encoder, or its path or name as in `load`.
        out: Path to the JSONL file of groups, each with its representative and its duplicates with their locations and
            cosines.
        keep_one: Path to the file of representatives: whole rows if it ends in .jsonl, .csv or .tsv, otherwise one text
            per line. The other texts are written to NAME.left-out.jsonl, each with its representative; both files
            together have as many rows as the input.
        threshold: Minimum cosine of duplicates, from -1 to 1.
        words: Minimum share of common words of duplicates; 0 compares vectors alone, so that negations, numbers, names,
            antonyms, and the truncated part of a text are ignored.
        corpus_options: Options of reading; `field` names the text of JSONL, CSV and Parquet rows.
        engine, precision: See `load`.
        seed: Random seed of the cells in which more than 100,000 texts are compared.
        overwrite: Whether to replace files at `out` and `keep_one` that likewise did not write.
        quiet: Whether to print nothing to standard error.

    Returns:
        The counts, the groups, and pairs near the threshold for inspection.

    >>> found = duplicates(["I lost my card.", "The door is open.", "i lost my card!"], quiet=True)
    >>> found.groups, found.kept
    (((0, 2),), 2)

    Raises:
        CorpusError: If a file cannot be read.
        LikewiseError: If an option is out of range, or there are fewer than two texts.
    """
    if not -1 <= threshold <= 1:
        raise OptionError(f"threshold is {threshold}: give a cosine, for example {THRESHOLD}")
    if not 0 <= words <= 1:
        raise OptionError(f"words is {words}: give a fraction from 0 to 1")
    targets = [out, keep_one, None if keep_one is None else left_out_path(keep_one)]
    written = [Path(target) for target in targets if target is not None]
    for target, formats in ((out, _TABLES), (keep_one, (".json",))):
        if target is not None and (ending := Path(target).suffix.lower()) in (*_NOT_WRITTEN, *formats):
            cure = ".jsonl" if target is out else ".jsonl, .csv, .tsv or .txt"
            raise OptionError(
                f"{os.fspath(target)}: {ending} files are not supported as output: give a name that ends in {cure}"
            )
    check_results(*written, overwrite=overwrite)
    progress, source = Progress(quiet), given_texts(texts, corpus_options)
    encoded = keep_texts(source, model=model, engine=engine, precision=precision, progress=progress)
    read = {Path(file).resolve() for file in encoded.files if file}
    for target in written:
        if target.resolve() in read:
            raise OptionError(f"{target} is an input file, and would be overwritten: choose another name")

    sample = [encoded.text(number) for number in range(min(encoded.different, _SAMPLE))]
    look = SecondLook(sample, encoded.encode, threshold, words)

    def reason(text: int, other: int) -> str:
        return look.reason(encoded.text(text), encoded.text(other))

    def same(text: int) -> bytes:
        return same_words(encoded.text(text)) if words else b""

    with orderly_stop(progress) as stop, progress.bar("comparing", encoded.different) as bar:

        def advance(done: int) -> None:
            bar.advance(done)
            stop.check("while texts were compared; their vectors are cached")

        repeated = repeats(encoded.vectors, threshold, reason, same=same, seed=seed, advance=advance)
    result = _summed(encoded, repeated, threshold, look.language)
    if out is not None:
        with written_result(Path(out), overwrite) as path, path.open("w", encoding="utf-8") as file:
            for first, others in _groups(encoded, repeated, result):
                rows = [{**encoded.row(other), "cosine": cosine} for other, cosine in others]
                file.write(_json({"kept": encoded.row(first), "duplicates": rows}))
    if keep_one is not None:
        _write_remaining(Path(keep_one), overwrite, source, encoded, repeated, result)
    return result


def left_out_path(keep_one: str | os.PathLike[str]) -> Path:
    """Return the path of the file of duplicates, next to the file of representatives.

    >>> left_out_path("kept.csv").name
    'kept.left-out.jsonl'
    """
    path = Path(keep_one)
    return path.with_name(f"{path.stem}.left-out.jsonl")


def _summed(texts: CachedTexts, repeated: Repeats, threshold: float, language: str) -> Duplicates:
    """Return the duplicates, with the pairs nearest to the threshold on both sides."""
    head = repeated.of[texts.number]  # (N,) the different text that each stands for
    order = np.argsort(texts.first[head], kind="stable")
    begins = np.flatnonzero(np.diff(head[order], prepend=-1))
    groups = [texts.position[group].tolist() for group in np.split(order, begins[1:]) if len(group) > 1]
    near = repeated.of != np.arange(texts.different)
    others = np.flatnonzero(~near & (repeated.nearest >= 0))

    def pair(text: int, other: int, cosine: float, reason: str = "") -> NearPair:
        return NearPair(texts.text(text), texts.text(other), round(float(cosine), 4), reason)

    above = sorted(np.flatnonzero(near).tolist(), key=lambda text: (repeated.cosine[text], text))[:_EXAMPLES]
    close = others[(repeated.near[others] < threshold) & (repeated.near[others] >= threshold - _BELOW)]
    below = sorted(close.tolist(), key=lambda text: (-repeated.near[text], text))[:_EXAMPLES]
    rejected = {text: (other, cosine, why) for text, other, cosine, why in repeated.apart if not near[text]}
    apart = sorted(rejected.items(), key=lambda item: (-item[1][1], item[0]))
    rows: list[tuple[int, tuple[int, float, str]]] = []
    for kind in REASONS:  # one of each kind before a second
        rows += [rejection for rejection in apart if rejection[1][2] == kind][:2]
    return Duplicates(
        texts=texts.read,
        empty=texts.read - len(texts),
        exact=len(texts) - texts.different,
        near=int(near.sum()),
        groups=tuple(map(tuple, groups)),
        language=language,
        threshold=threshold,
        above=tuple(pair(text, repeated.of[text], repeated.cosine[text]) for text in above),
        below=tuple(pair(text, repeated.nearest[text], repeated.near[text]) for text in below),
        apart=tuple(pair(text, other, cosine, why) for text, (other, cosine, why) in rows),
        reasons=dict(Counter(why for _, _, why in rejected.values()).most_common()),
        at_random=round(_at_random(texts.vectors), 4),
        skipped=tuple(texts.report.messages),
        is_partial=texts.report.is_partial,
    )


def _at_random(vectors: np.ndarray) -> float:
    """Return the cosine that one in a hundred pairs drawn at random reaches, by vectors (S, D)."""
    if len(vectors) < 2:
        return 0.0
    rng = np.random.default_rng(0)
    first = rng.integers(0, len(vectors), _PAIRS)
    second = (first + rng.integers(1, len(vectors), _PAIRS)) % len(vectors)  # another one
    return float(np.quantile((vectors[first] * vectors[second]).sum(axis=1), 0.99))


def _groups(texts: CachedTexts, repeated: Repeats, result: Duplicates) -> Iterator[tuple[int, list[tuple[int, float]]]]:
    """Yield the place of the text that is kept of each group, and the places of its duplicates with their cosines."""
    place = {position: place for place, position in enumerate(texts.position.tolist())}
    for group in result.groups:
        first, *others = (place[position] for position in group)
        yield first, [(other, round(float(repeated.cosine[texts.number[other]]), 4)) for other in others]


def _write_remaining(
    path: Path, overwrite: bool, source: TextSource, texts: CachedTexts, repeated: Repeats, result: Duplicates
) -> None:
    """Write the first text of each group, and in a second file the other texts; both are read again."""
    reason: dict[int, Record] = {}
    for first, others in _groups(texts, repeated, result):
        row = texts.row(first)
        words, text_words = same_words(row["text"]), row["text"].split()
        for other, cosine in others:
            text = texts.row(other)["text"]
            same = text.split() == text_words or (words and same_words(text) == words)
            why = "the same words" if same else "says the same"
            reason[int(texts.position[other])] = {"reason": why, "cosine": cosine, "kept": row}
    suffix = path.suffix.lower()
    as_table = suffix in (".csv", ".tsv")
    columns: dict[str, None] = {}
    for unit in _again(source, result) if as_table else ():
        columns |= dict.fromkeys(_row(unit))
    with ExitStack() as stack:
        paths = [stack.enter_context(written_result(target, overwrite)) for target in (path, left_out_path(path))]
        opened = partial(open, mode="w", encoding="utf-8", errors="backslashreplace", newline="")  # of lone surrogates
        file, left_out = (stack.enter_context(opened(one)) for one in paths)
        table = csv.DictWriter(file, list(columns), restval="", delimiter="\t" if suffix == ".tsv" else ",")
        if as_table:
            table.writeheader()
        for position, unit in enumerate(_again(source, result)):
            if position in reason:
                left_out.write(_json(_row(unit) | {"left_out": reason[position]}))
            elif as_table:
                table.writerow(_row(unit))
            elif suffix in (".jsonl", ".ndjson"):
                file.write(_json(_row(unit)))
            else:
                file.write(unit.text + "\n")


def _row(unit: Unit) -> Record:
    return dict(unit.row or {"text": unit.text} | ({"file": unit.file} if unit.file else {}))


def _json(row: Mapping[str, object]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str) + "\n"


def _again(source: TextSource, result: Duplicates) -> Iterator[Unit]:
    """Yield the texts once more.

    Raises:
        TextError: If they are not as many as before.
    """
    count = 0
    for unit in read_units(source, Progress(quiet=True)):
        count += 1
        yield unit
    if count != result.texts:
        raise TextError("the texts changed while they were compared: run the same command again")
