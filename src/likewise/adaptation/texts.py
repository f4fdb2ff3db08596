"""The texts of an adaptation: passages within the time, their vectors by the base, and the held-out set.

Letters of the shapes: S texts, V pieces of the vocabulary, D and E embeddings.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from likewise.adaptation.adapt_options import AdaptOptions
from likewise.adaptation.head import BaseTexts, FrozenTexts
from likewise.augment.negation import NotEnglishError, negate
from likewise.corpus.passages import OfferedPair, Passage, offered_pairs
from likewise.errors import LikewiseError, MissingExtraError, counted
from likewise.runs.job import Job
from likewise.runs.progress import WORTH_TELLING, Bar, Progress, orderly_stop, seconds_each, spoken
from likewise.runs.whole_files import Parts, Record

HELD_OUT = 500
"""Sentences that measure, at most."""
_NEGATED = 400
"""Sentences that are negated, half to train on and half to measure."""
_DISTRACTORS = 4500
_MEASURED, _ENCODED = 256, 64  # passages whose tokens tell how much there is to encode, and how fast that is
_SHARE = 0.7  # of the time that encoding takes; the rest is training the heads, and scoring
_LEAST_USED = 256
_OVER = 2  # times the minutes given that a job may take, as its duration is an estimate
_LATER = (
    350_000_000  # bytes of training and of the modules that it loads, in addition to what is counted: 290 and 360 MB
)
_BLOCK = 256  # texts of a saved part: a minute of a large model on one core
_LEAST_MEASURING = 100  # passages that offer one, of which half are held out: with fewer nothing is measured
_PASSAGES = 0.4  # share of passages that offer a measuring pair, below which the text counts as single sentences


@dataclass(frozen=True)
class OwnText:
    """A text as an adaptation uses it; no passage is both measured on and learned from.

    Attributes:
        passages: Used passages, in order.
        pairs: All pairs that they provide.
        held_out: Held-out pairs for the evaluation; empty if nothing can be measured.
        training: Training pairs.
        pool: N distinct texts that are searched.
    """

    passages: Sequence[Passage]
    pairs: Sequence[OfferedPair]
    held_out: Sequence[OfferedPair]
    training: Sequence[OfferedPair]
    pool: Sequence[str]

    @classmethod
    def of(cls, passages: Sequence[Passage], seed: int) -> OwnText:
        """Split passages into an evaluation set and a training set."""
        pairs = offered_pairs(passages, seed=seed)
        held_out_pairs, training = held_out(pairs, passages, seed)
        pool = list(dict.fromkeys(pair.second for pair in (*held_out_pairs, *pairs)))[: HELD_OUT + _DISTRACTORS]
        return cls(passages, pairs, held_out_pairs, training, pool)

    @property
    def queries(self) -> list[str]:
        """The texts that search, Q."""
        return [pair.first for pair in self.held_out]

    @property
    def own(self) -> list[int]:
        """The place in `pool` of the passage of each query, Q."""
        place = {text: row for row, text in enumerate(self.pool)}
        return [place[pair.second] for pair in self.held_out]

    @property
    def facts(self) -> Record:
        """The facts of the record."""
        return {
            "passages": len(self.passages),
            "pairs": dict(Counter(pair.kind for pair in self.pairs)),
            "held_out": len(self.held_out),
            "searched": len(self.pool),
        }


def sample_passages(
    job: Job,
    base: BaseTexts,
    passages: Sequence[Passage],
    rated: Sequence[str],
    options: AdaptOptions,
    progress: Progress,
) -> list[Passage]:
    """Return the used passages in order: the requested number, or as many as fit the time.

    Nearly all of the time goes into encoding the texts that the passages offer, the rated pairs of the guard and the
    negations. Its speed is measured on a few passages, and the number that follows is noted in the job. If even the
    fewest passages would take more than twice the time given, that is an error.
    """
    order = np.random.default_rng([options.seed, 3]).permutation(len(passages))

    def measurable(count: int) -> bool:
        return not unmeasured(OwnText.of([passages[int(i)] for i in np.sort(order[:count])], options.seed))

    most = options.passages or len(passages)
    if "passages" in job.notes:
        most = job.notes["passages"]
    # Of single sentences nothing is encoded, so that there is no time to measure and to bound.
    elif not (options.passages and progress.quiet) and (measurable(_MEASURED) or measurable(most)):
        few = [passages[int(i)] for i in order[:_MEASURED]]
        with progress.bar("measuring the speed") as bar:
            fixed, each = _seconds(base, few, rated, options.seed, bar)
        fit = max(0, int((_SHARE * 60 * options.minutes - fixed) / each))
        most = options.passages or max(_LEAST_USED, fit)
        used = min(most, len(passages))
        seconds = (fixed + each * used) / _SHARE
        if not options.passages and used > fit:
            longer = (
                f"{spoken(seconds)}, more than the given {options.minutes:g} min: {base.name} needs this time for "
                f"{counted(used, 'passage')}, which is the minimum"
            )
            if seconds > _OVER * 60 * options.minutes:
                raise LikewiseError(f"{longer}. Give --minutes {math.ceil(seconds / 60)}, or a smaller base")
            progress.tell(longer)
        elif seconds >= WORTH_TELLING:
            progress.tell(f"{spoken(seconds)} in all, measured on a few passages")
        job.note(passages=most)
    if most < len(passages):
        reason = "as requested" if options.passages else "more do not fit into the given time"
        progress.tell(f"{most:,} of {len(passages):,} passages are used: {reason}")
    return [passages[int(i)] for i in np.sort(order[:most])]


def memory(base: BaseTexts, texts: Sequence[str], text: OwnText) -> int:
    """Return the peak memory of an adaptation in bytes.

    Args:
        texts: Distinct texts to encode.
    """
    dimension = base.vectors(sorted(texts, key=len)[-_ENCODED:]).shape[1]
    vectors = 2 * 4 * len(texts) * dimension  # in blocks, and joined
    under = 2 * 4 * len(text.pool) * dimension  # of the passages, by a candidate
    scores = 12 * 4 * len(text.held_out) * len(text.pool)  # of two candidates, and with BM25, on their way to ranks
    return taken() + _LATER + vectors + under + scores


def taken() -> int:
    """Return the most bytes of memory that this process has taken so far; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def frozen_texts(job: Job, base: BaseTexts, texts: Sequence[str], progress: Progress) -> FrozenTexts:
    """Return the different texts under an encoder; a resumed job reads finished blocks back."""
    unique = list(dict.fromkeys(texts))
    parts = Parts(job.work / "vectors")
    blocks: list[np.ndarray] = []
    with orderly_stop(progress) as stop, progress.bar("encoding the texts", len(unique)) as bar:
        for start in range(0, len(unique), _BLOCK):
            name = f"{start:09d}.npy"
            if name not in parts:
                stop.check(f"after {start:,} of {len(unique):,} texts")
                with parts.new(name) as path, path.open("wb") as file:
                    np.save(file, base.vectors(unique[start : start + _BLOCK]))
            blocks.append(np.load(parts.path(name)))
            bar.update(min(start + _BLOCK, len(unique)))
    rows = {text: row for row, text in enumerate(unique)}
    return FrozenTexts(torch.from_numpy(np.concatenate(blocks)), base.tokens(unique), rows)


def held_out(
    pairs: Sequence[OfferedPair], passages: Sequence[Passage], seed: int
) -> tuple[list[OfferedPair], list[OfferedPair]]:
    """Return held-out pairs for the evaluation, and pairs for the training, without common passages.

    The evaluation uses sentences with the rest of their passage, or titles if there are too few of them. It does not
    use deletions, because any weight on words solves them.
    """
    held_out_pairs: list[OfferedPair] = []
    for kind in ("rest", "title"):
        measuring = [pair for pair in pairs if pair.kind == kind]
        count = min(HELD_OUT, len(measuring) // 2)
        if not held_out_pairs and count >= _LEAST_MEASURING // 2 and len(measuring) >= _PASSAGES * len(passages):
            chosen = np.random.default_rng([seed, 4]).permutation(len(measuring))[:count]
            held_out_pairs = [measuring[int(i)] for i in chosen]
    gone = {pair.passage for pair in held_out_pairs}
    return held_out_pairs, [pair for pair in pairs if pair.passage not in gone]


def unmeasured(text: OwnText) -> str:
    """Return why no gain can be measured on a text, so that the base is kept; '' if one can."""
    if text.held_out:
        return ""
    measuring = {pair.passage for pair in text.pairs if pair.kind in ("rest", "title")}
    there = f"{len(measuring):,} of {counted(len(text.passages), 'passage')}"
    return (
        f"{there} have several sentences or a title, but a gain can only be measured with {_LEAST_MEASURING} such "
        f"passages or more, and {_PASSAGES:.0%} of the text. A change that cannot be measured is not made: such "
        "changes were harmful on most texts of single sentences (docs/guides/adapt.md)"
    )


def negations(pairs: Sequence[OfferedPair], seed: int) -> list[tuple[str, str]]:
    """Return sentences of the pairs with their negations; none if the text is not English, or without the extra."""
    whole = {"rest": "first", "deletion": "second"}  # the first text of a deletion has lost words
    sentences = list(dict.fromkeys(getattr(pair, whole[pair.kind]) for pair in pairs if pair.kind in whole))
    order = np.random.default_rng([seed, 8]).permutation(len(sentences))[: 2 * _NEGATED]
    chosen = [sentences[int(i)] for i in order]
    try:
        negated = negate(chosen)
    except (MissingExtraError, NotEnglishError):
        return []
    return [(text, no) for text, no in zip(chosen, negated, strict=True) if no is not None][:_NEGATED]


def _seconds(base: BaseTexts, few: Sequence[Passage], rated: Sequence[str], seed: int, bar: Bar) -> tuple[float, float]:
    """Return the seconds that encoding takes here for the rated texts and the negations, and for each passage."""

    def encode(some: Sequence[str]) -> None:
        base.vectors(some)
        bar.advance(len(some))

    texts = [passage.text for passage in few[:_ENCODED]]
    seconds = seconds_each(encode, texts) * len(texts)
    sides = {side for pair in offered_pairs(few, seed=seed) for side in (pair.first, pair.second)} or {*texts}
    in_texts, in_sides, in_rated = (
        sum(map(len, base.tokens(list(some)))) for some in (texts, sides, dict.fromkeys(rated))
    )
    each = seconds / in_texts * in_sides / len(few)
    return seconds / in_texts * (in_rated + 2 * _NEGATED * in_sides / len(sides)), each
