"""The result of an adaptation: its facts, its model card, and the page with the candidates.

Letters of the shapes: Q held-out queries, N passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from sentence_transformers import SentenceTransformer

from likewise.evaluation.report import markdown_table
from likewise.evaluation.task import number
from likewise.inference.load_model import SavedModel
from likewise.runs.pages import page_of
from likewise.runs.whole_files import Values
from likewise.training.training_result import model_card

COLUMNS = ("Candidate", "MRR", "Gain", "Noise", "STS-B dev", "Negation")
_ABOUT = """This model is `{base}`, adapted to {passages:,} passages of text without labels. The chosen candidate is
**{chosen}**, because {reason}.

{advice}

The folder contains {form}.

{table}

MRR is the mean reciprocal rank, times 100, of the passage that contained a held-out sentence. Noise is two standard
errors of the gain. Negation is 100 (1 - cosine) of sentences and their negations; higher values mean that 'not'
changes the vector."""
_OFFERED = {
    "title": "a title or heading and the passage below it",
    "question": "a question and the text after it",
    "rest": "a sentence and the rest of its passage",
    "deletion": "a passage of one sentence and a copy without some of its words",
}
"""What the kinds of pairs are, for a reader."""
_FILES = "`report.html` shows changed neighbours; `likewise.json` contains options, versions and all scores."


@dataclass(frozen=True)
class Candidate:
    """An adapted encoder and its scores.

    The mean reciprocal rank (MRR) of the passages from which held-out sentences were taken is multiplied by 100.

    Attributes:
        name: Short description of the candidate.
        mrr: Mean reciprocal rank by the vectors; None if nothing can be measured.
        gain: Difference between `mrr` and the MRR of the base.
        noise: Two standard errors of `gain`.
        sts_dev: Spearman correlation on STS-B dev, times 100; None without its data.
        negation: 100 (1 - cosine) of held-out sentences and their negations; None without them.
    """

    name: str
    mrr: float | None = None
    gain: float | None = None
    noise: float | None = None
    sts_dev: float | None = None
    negation: float | None = None

    def cells(self) -> list[str]:
        """Return the row of the candidate in a table, in the order of `COLUMNS`."""
        gain = "-" if self.gain is None else f"{self.gain:+.2f}"
        return [self.name, number(self.mrr), gain, *map(number, (self.noise, self.sts_dev, self.negation))]


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
        """The form of the saved folder, and the programs that can load it, in one sentence."""
        return self.record["form"]

    @property
    def advice(self) -> str:
        """The advice on whether to use the model, in a sentence or two."""
        return self.record["advice"]

    @property
    def beside_bm25(self) -> tuple[float, float] | None:
        """The gain over the base and its noise, in points of MRR, with BM25 added to both; None for the base."""
        return None if (scores := self.record["beside_bm25"]) is None else (scores[0], scores[1])

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates with their scores, the base first."""
        return tuple(Candidate(**facts) for facts in self.record["candidates"])


def form_of(model: SentenceTransformer) -> str:
    """Return the form of a model's folder, and the programs that can load it, in one sentence."""
    own = sorted({type(module).__name__ for module in model if type(module).__module__.startswith("likewise.")})
    if not own:
        return "stock modules of sentence-transformers: any tool that reads its folders can load it"
    return (
        f"a module of likewise ({', '.join(own)}): likewise loads it, and sentence-transformers with "
        "trust_remote_code=True where likewise is installed. For other servers adapt with --plain, or export it"
    )


def advice(measured: bool, beside_bm25: Sequence[float] | None) -> str:
    """Return whether to use the chosen encoder, and its gain with BM25 added, in a sentence or two.

    Args:
        measured: Whether any gain could be measured.
        beside_bm25: Gain over the base with BM25 added to both, and its noise; None if the base was chosen.
    """
    if beside_bm25 is None:
        why = "no candidate is significantly better" if measured else "no gain can be measured"
        return f"Use the base as it is: {why}."
    gain, noise = beside_bm25
    worth = f"With BM25 added, as in likewise search, the gain is {gain:+.2f} ± {noise:.2f} points of MRR over the base"
    if gain > noise:
        return f"Use it. {worth}."
    return f"Use it for a search by vectors alone. {worth}, which is not significant: use the base there."


def adapted_card(facts: Values, candidates: Sequence[Candidate], model: SentenceTransformer) -> str:
    """Return the text of README.md."""
    table = markdown_table(COLUMNS, [candidate.cells() for candidate in candidates])
    about = _ABOUT.format_map({**facts, "passages": facts["corpus"]["passages"], "table": table})
    return model_card(model, "adapt", "A sentence encoder adapted", about, _FILES)


def adapted_page(
    facts: Values,
    candidates: Sequence[Candidate],
    queries: Sequence[str],
    passages: Sequence[str],
    own: Sequence[int],
    scores: tuple[np.ndarray, np.ndarray],
) -> str:
    """Return the page.

    Args:
        facts: Facts of the record.
        queries, passages: Q texts, and the N that were searched.
        own: Row of each query's own passage.
        scores: Scores of queries and passages, (Q, N), by the base and by the chosen encoder.
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
    winner = next(candidate for candidate in candidates if candidate.name == facts["chosen"])
    counts = [int((ranks[1] > ranks[0]).sum()), int((ranks[1] < ranks[0]).sum()), len(queries)]
    return page_of(
        "likewise.adaptation",
        "report.html.j2",
        **facts,
        columns=COLUMNS,
        rows=[candidate.cells() for candidate in candidates],
        changes=changes,
        winner=winner,
        counts=counts,
        offered=[f"{count:,} times {_OFFERED.get(kind, kind)}" for kind, count in facts["corpus"]["pairs"].items()],
    )


def changed_neighbours(
    before: np.ndarray, after: np.ndarray, own: Sequence[int], most: int = 10, top: int = 3
) -> list[tuple[int, list[int], list[int]]]:
    """Return queries whose first passage changed: number, passages before, and passages after.

    Args:
        before, after: (Q, N) scores of Q queries with N passages.
        own: Row of each query's own passage.
        most: Number of returned queries; queries that gain or lose their own passage as the first match come first,
            alternately.
        top: Number of passages per query.
    """
    tops = [np.argsort(-side, axis=1, kind="stable")[:, :top].tolist() for side in (before, after)]
    won: list[int] = []
    lost: list[int] = []
    other: list[int] = []
    for query, (old, new) in enumerate(zip(*tops, strict=True)):
        if old[0] != new[0]:
            (won if new[0] == own[query] else lost if old[0] == own[query] else other).append(query)
    turns = [query for pair in zip_longest(won, lost) for query in pair if query is not None]
    return [(query, tops[0][query], tops[1][query]) for query in (*turns, *other)[:most]]


def ranks_by_scores(scores: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the reciprocal rank of each query's own target, (Q,); tied targets get the lower rank.

    Args:
        scores: (Q, N) of queries with targets.
        own: (Q,) position of each query's target.

    >>> ranks_by_scores(np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 0.0]]), np.array([1, 0]))
    array([0.5, 0.5])
    """
    mine = scores[np.arange(len(scores)), own]
    # Rounding must not decide a tie: a collapsed model has all cosines equal but for the last bit.
    return 1 / (scores >= mine[:, None] - 1e-6).sum(axis=1)
