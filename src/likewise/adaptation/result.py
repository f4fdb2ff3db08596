"""The result of an adaptation: the folder's facts, its card, and the page that shows what was chosen from.

Letters of the shapes: Q held-out queries, N passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer

from likewise.adaptation.choice import COLUMNS, LEAST, Candidate
from likewise.evaluation.geometry import ranks_by_scores
from likewise.evaluation.report import markdown_table
from likewise.inference.load_model import SavedModel
from likewise.runs.pages import page_of
from likewise.training.result import model_card


class AdaptResult(SavedModel):
    """The result of `adapt`."""

    @property
    def chosen(self) -> str:
        """The name of the candidate that was saved, "base" for the unchanged base."""
        return self.record["chosen"]

    @property
    def reason(self) -> str:
        """The reason for the choice, in one sentence."""
        return self.record["reason"]

    @property
    def form(self) -> str:
        """The form of the saved folder, and who can load it, in one sentence."""
        return self.record["form"]

    @property
    def advice(self) -> str:
        """The advice to use the model or not, in a sentence or two."""
        return self.record["advice"]

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates with their scores, the base first."""
        return tuple(Candidate(**one) for one in self.record["candidates"])


def form_of(model: SentenceTransformer) -> str:
    """Return the form of a model's folder, and who can load it, in one sentence."""
    own = sorted({type(module).__name__ for module in model if type(module).__module__.startswith("likewise.")})
    if not own:
        return "stock modules of sentence-transformers: any tool that reads its folders can load it"
    return (
        f"a module of likewise ({', '.join(own)}): likewise loads it, and sentence-transformers with "
        "trust_remote_code=True where likewise is installed. For other servers adapt with --plain, or export it"
    )


def advice(chosen: str, candidates: Sequence[Candidate], alone: bool) -> str:
    """Return whether to use the chosen encoder, in a sentence or two."""
    if chosen == "base":
        if candidates[0].mrr is None:
            return "Use the base as it is: nothing was changed, as no gain could be measured."
        hint = "" if alone else " If your search uses vectors without BM25, try --alone."
        return f"Use the base as it is: nothing that was tried is better by more than the noise.{hint}"
    one = next(one for one in candidates if one.name == chosen)
    gain, noise = one.beside_gain or 0.0, one.beside_noise or 0.0
    beside = f"its gain over the base there is {gain:+.2f} ± {noise:.2f} points of MRR"
    if not alone:
        return f"Use it, beside BM25 as in likewise search: {beside}."
    if gain > max(noise, LEAST * (candidates[0].beside_mrr or 0.0)):
        return f"Use it, for vectors alone and beside BM25, as in likewise search: {beside}."
    return (
        "Use it if your search has vectors alone. Do not use it beside BM25, as in likewise search: "
        f"{beside}, too little to count."
    )


_ABOUT = """`{base}`, adapted to {passages:,} passages of text without labels. Chosen: **{chosen}**, because {reason}.

{advice}

The folder holds {form}.

{table}

Mean reciprocal rank, times 100, of the passage that a held-out sentence was taken from: with BM25 beside the vectors,
and by the vectors alone. Noise: two standard errors of the gain. Negation:
100 (1 - cosine) of sentences and their negations, higher where 'not' is seen."""
_OFFERED = {
    "title": "a title or heading, with the passage below it",
    "question": "a question, with what follows it",
    "rest": "a sentence, with the rest of its passage",
    "deletion": "a passage of one sentence, with the same after some of its words were left out",
}
"""What the kinds of pairs are, for a reader."""
_FILES = "`report.html` shows neighbours that changed; options, versions and all scores are in `likewise.json`."


def adapted_card(facts: Mapping[str, Any], candidates: Sequence[Candidate], model: Any) -> str:
    """Return the text of README.md."""
    table = markdown_table(COLUMNS, [one.cells() for one in candidates])
    about = _ABOUT.format_map({**facts, "passages": facts["corpus"]["passages"], "table": table})
    return model_card(model, "adapt", "A sentence encoder adapted", about, _FILES)


def adapted_page(
    facts: Mapping[str, Any],
    candidates: Sequence[Candidate],
    queries: Sequence[str],
    passages: Sequence[str],
    own: Sequence[int],
    scores: tuple[np.ndarray, np.ndarray],
) -> str:
    """Return the page.

    Args:
        facts: the facts of the record.
        candidates: all of them, the base first.
        queries: Q texts.
        passages: N texts that were searched.
        own: the row of each query's own passage.
        scores: of the queries with the passages, (Q, N), by the base and by the chosen encoder.
    """
    ranks = [ranks_by_scores(side, np.array(own, dtype=np.int64)) for side in scores]
    changes = [
        {
            "query": queries[query],
            "ranks": [round(1 / side[query]) for side in ranks],
            "sides": [[(passages[row], row == own[query]) for row in rows] for rows in sides],
        }
        for query, *sides in changed_neighbours(*scores, own)
    ]
    shown = next(one for one in candidates if one.name == facts["chosen"])
    counts = [int((ranks[1] > ranks[0]).sum()), int((ranks[1] < ranks[0]).sum()), len(queries)]
    return page_of(
        "likewise.adaptation",
        "report.html.j2",
        **facts,
        columns=COLUMNS,
        rows=[one.cells() for one in candidates],
        changes=changes,
        shown=shown,
        counts=counts,
        offered=[f"{count:,} times {_OFFERED.get(kind, kind)}" for kind, count in facts["corpus"]["pairs"].items()],
    )


def changed_neighbours(
    before: np.ndarray, after: np.ndarray, own: Sequence[int], most: int = 10, shown: int = 3
) -> list[tuple[int, list[int], list[int]]]:
    """Return queries whose first passage changed: number, passages before, and passages after.

    Args:
        before, after: (Q, N) scores of Q queries with N passages.
        own: the row of each query's own passage.
        most: queries returned; those that win or lose their own passage as the first come first, in turn.
        shown: passages of a query.
    """
    tops = [np.argsort(-side, axis=1, kind="stable")[:, :shown].tolist() for side in (before, after)]
    won: list[int] = []
    lost: list[int] = []
    other: list[int] = []
    for query, (old, new) in enumerate(zip(*tops, strict=True)):
        if old[0] != new[0]:
            (won if new[0] == own[query] else lost if old[0] == own[query] else other).append(query)
    turns = [query for pair in zip_longest(won, lost) for query in pair if query is not None]
    return [(query, tops[0][query], tops[1][query]) for query in (*turns, *other)[:most]]
