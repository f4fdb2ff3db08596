"""The texts of an adaptation: which passages fit the time, their vectors under the base, and those held out.

Letters of the shapes: S texts, V pieces of the vocabulary, D and E embeddings.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from likewise.augment.negation import negate
from likewise.corpus.options import CorpusError, CorpusOptions
from likewise.corpus.passages import OfferedPair, Passage
from likewise.corpus.sources import Spec
from likewise.encoder.opening import LoadError
from likewise.errors import MissingExtraError, counted
from likewise.inference.loading import load
from likewise.runs.job import Job
from likewise.runs.options import OptionError
from likewise.runs.parts import Parts
from likewise.runs.progress import Progress
from likewise.runs.stopping import orderly_stop
from likewise.training.adapt_head import BaseTexts, FrozenTexts
from likewise.training.recipe_run import train

HELD_OUT = 500
"""Sentences that measure, at most."""

PHRASE = 6.0
"""Mean words of a passage below which a text is phrases: a missing word changes these, so nothing is learnt from it."""

FEWEST = 100
"""Single sentences below which nothing is learnt: with fewer nothing was ever measured (docs/adapt.md)."""

_NEGATED = 400
"""Sentences that are negated, half to train on and half to measure."""

TUNING: dict[str, Any] = {"max_steps": 100, "learning_rate": 2e-5, "batch_size": 64, "max_length": 128}
"""Options of ArcCSE on single sentences: at higher rates a domain is lost (docs/adapt.md)."""

_BLOCK = 2048  # texts of a saved part
_TUNING_TIME = 0.3  # share of the minutes
_UPDATE = 400  # texts that are encoded in the time of one update of ArcCSE, about
_LEAST_UPDATES = 20  # fewer are not worth their start
_FEWEST = 50  # held-out sentences below which nothing is measured
_PASSAGES = 0.4  # share of passages that offer a measuring pair, below which the text is single sentences


def sample_passages(job: Job, base: BaseTexts, passages: Sequence[Passage], progress: Progress) -> list[Passage]:
    """Return the passages that are used, in order: as many as asked for, or as fit the time.

    The speed is measured once and noted in the job, with the updates of ArcCSE that fit their share of the time.
    """
    options = job.plan.options
    order = np.random.default_rng([options["seed"], 3]).permutation(len(passages))
    if options["passages"]:
        job.note(passages=options["passages"], updates=TUNING["max_steps"])
    elif "passages" not in job.notes:
        probe = [passages[int(i)].text for i in order[:256]]
        base.vectors(probe[:32])  # the first call is slower
        begun = time.perf_counter()
        base.vectors(probe)
        pace = (time.perf_counter() - begun) / len(probe)
        seconds = 60 * options["minutes"]
        updates = min(TUNING["max_steps"], int(_TUNING_TIME * seconds / (_UPDATE * pace)))
        # Both sides of a pair, in half of the time.
        job.note(passages=int(max(256, 0.5 * seconds / (2 * pace))), updates=updates)
    most = job.notes["passages"]
    if most < len(passages):
        reason = "as asked" if options["passages"] else "more do not fit the time given"
        progress.tell(f"{most:,} of {len(passages):,} passages are used: {reason}")
    return [passages[int(i)] for i in np.sort(order[:most])]


def tuned(job: Job, corpus: Spec, options: CorpusOptions | None, progress: Progress) -> BaseTexts | None:
    """Return the base trained further by ArcCSE on the sentences of the corpus; None where that cannot be done.

    The model is kept in the job, and a stopped training is resumed.
    """
    plan, steps = job.plan.options, job.notes["updates"]
    if steps < _LEAST_UPDATES:
        progress.tell(f"no training by ArcCSE: only {counted(steps, 'update')} would fit the time given")
        return None
    folder = os.fspath(job.work / "tuned")
    settings = TUNING | {"max_steps": steps, "select_by": "last"}
    files: Any = [os.fspath(one) for one in corpus] if isinstance(corpus, (list, tuple)) else corpus
    given = {"base": plan["base"], "out": folder, "seed": plan["seed"], "corpus_options": options}
    try:
        train("arccse", files, **given, **settings, quiet=progress.quiet)
    except (CorpusError, LoadError, OptionError) as reason:  # too few sentences; a base that is no transformer
        progress.tell(f"no training by ArcCSE: {reason}")
        return None
    return BaseTexts(load(folder), folder)


def frozen_texts(
    job: Job, base: BaseTexts, texts: Sequence[str], progress: Progress, folder: str = "vectors"
) -> FrozenTexts:
    """Return the different texts under an encoder; a resumed job reads finished blocks back from its folder."""
    unique = list(dict.fromkeys(texts))
    parts = Parts(job.work / folder)
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
    return FrozenTexts(torch.from_numpy(np.concatenate(blocks)), base.tokens(unique), base, rows)


def held_out(
    pairs: Sequence[OfferedPair], passages: Sequence[Passage], seed: int
) -> tuple[list[OfferedPair], list[OfferedPair]]:
    """Return held-out pairs to measure on, and those to train on; no passage is in both.

    Sentences with the rest of their passage measure, or titles where these are too few; deletions do not, as any weight
    on words solves them.
    """
    held: list[OfferedPair] = []
    for kind in ("rest", "title"):
        measuring = [pair for pair in pairs if pair.kind == kind]
        wanted = min(HELD_OUT, len(measuring) // 2)
        if not held and wanted >= _FEWEST and len(measuring) >= _PASSAGES * len(passages):
            chosen = np.random.default_rng([seed, 4]).permutation(len(measuring))[:wanted]
            held = [measuring[int(i)] for i in chosen]
    gone = {pair.passage for pair in held}
    return held, [pair for pair in pairs if pair.passage not in gone]


def mean_words(passages: Sequence[Passage]) -> float:
    """Return the mean number of words of a passage."""
    return float(np.mean([len(one.text.split()) for one in passages]))


def unfit(passages: Sequence[Passage], held: Sequence[OfferedPair]) -> str:
    """Return why nothing should be learnt from a text, '' where something should.

    Args:
        held: the pairs to measure on; none for single sentences.
    """
    if mean_words(passages) < PHRASE:
        return (
            "the text is short phrases: it has no passages to measure on, and a phrase without one of its words means "
            "something else, so the base is kept"
        )
    if not held and len(passages) < FEWEST:
        return (
            f"the text is {counted(len(passages), 'single sentence')}, on which nothing can be measured, and too few "
            f"to learn from without: give {FEWEST} or more"
        )
    return ""


def negations(pairs: Sequence[OfferedPair], seed: int) -> list[tuple[str, str]]:
    """Return sentences of the pairs with their negations; none where the extra `negation` is not installed.

    English alone has rules; a sentence of another language gets none, or a few that are wrong.
    """
    whole = {"rest": "first", "deletion": "second"}  # the first text of a deletion has lost words
    sentences = list(dict.fromkeys(getattr(pair, whole[pair.kind]) for pair in pairs if pair.kind in whole))
    order = np.random.default_rng([seed, 8]).permutation(len(sentences))[: 2 * _NEGATED]
    chosen = [sentences[int(i)] for i in order]
    try:
        found = negate(chosen)
    except MissingExtraError:
        return []
    return [(text, no) for text, no in zip(chosen, found, strict=True) if no is not None][:_NEGATED]
