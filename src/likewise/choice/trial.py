"""Ways to search, measured on queries that have to find their own passages, through a real index.

Letters of the shapes: Q queries.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.choice.held_out import HeldOut
from likewise.corpus.corpus_options import CorpusOptions
from likewise.evaluation.bootstrap import sampled_scores
from likewise.evaluation.task import Items
from likewise.retrieval.pipeline import Pipeline
from likewise.runs.progress import Progress, orderly_stop
from likewise.searching.index_update import index
from likewise.searching.search_index import Index, Mode

DEPTH = 10
"""Passages of a search that count."""
_DRAWS = 10_000  # samples of the bootstrap


@dataclass(frozen=True)
class Way:
    """A way to search an index: by words, by vectors, or by both in a pipeline."""

    mode: Mode = "hybrid"
    pipeline: Pipeline | None = None


@dataclass(frozen=True)
class Measured:
    """The scores of a way to search.

    Attributes:
        each: (Q,) nDCG@10 times 100 of each query, of the passages that are its own the first found alone.
        found: the ids that each query found, the best first.
        seconds: (Q,) time of each search, with the encoding of the query.
    """

    each: np.ndarray
    found: Sequence[Sequence[str]]
    seconds: np.ndarray


def trial_index(
    held: HeldOut, folder: Path, model: Any, *, language: str = "English", quiet: bool = True, **settings: Any
) -> Path:
    """Index the passages of held-out queries, or go on with an index that is begun; return its folder.

    Args:
        folder: `text` and `index` are made in it.
        settings: further ones of `likewise.index`.
    """
    text, out = held.save(folder / "text"), folder / "index"
    options = CorpusOptions(field="text")
    settings |= {"corpus_options": options, "metadata": ["_id"], "language": language, "precision": "fp32"}
    index(text, model=model, out=out, quiet=quiet, **settings)
    return out


def measure(opened: Index, held: HeldOut, way: Way, progress: Progress, what: str = "searching") -> Measured:
    """Search with each query.

    Raises:
        Stopped: a stop was asked for.
    """
    each, ids_found, seconds = [], [], []
    with orderly_stop(progress) as stop, progress.bar(what, len(held.queries)) as bar:
        for query in held.queries:
            begun = time.perf_counter()
            hits = opened.search(query.text, DEPTH, mode=way.mode, mark=False, pipeline=way.pipeline)
            seconds.append(time.perf_counter() - begun)
            ids = list(dict.fromkeys(hit.metadata["_id"] for hit in hits))
            rank = next((i for i, name in enumerate(ids) if name in query.own), None)
            each.append(discounted(rank))
            ids_found.append(ids)
            bar.advance()
            stop.check(f"after {bar.done:,} of {len(held.queries):,} queries")
    return Measured(np.array(each), ids_found, np.array(seconds))


def discounted(rank: int | None) -> float:
    """Return nDCG@10 times 100 if one passage is wanted, and is found at a rank from 0; None if it is not found.

    >>> discounted(0), round(discounted(2), 1), discounted(None)
    (100.0, 50.0, 0.0)
    """
    return 0.0 if rank is None or rank >= DEPTH else float(100 / np.log2(rank + 2))


def gain_interval(gains: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of a mean gain, by samples of the queries with replacement (a paired bootstrap).

    Args:
        gains: (Q,) of each query.

    >>> gain_interval(np.zeros(20))
    (0.0, 0.0)
    """
    low, high = np.quantile(sampled_scores("queries", [Items(gains / 100)], _DRAWS), (0.025, 0.975))
    return float(low), float(high)
