"""The choice between adapted encoders without labels: retrieval on held-out passages, with STS-B dev as a guard.

Beside it are the card and the page that show what was chosen from.

Letters of the shapes: Q held-out sentences, N passages, D embedding.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from likewise.evaluation.pairs import RatedPairs
from likewise.evaluation.registry import rated_task
from likewise.evaluation.report import markdown_table
from likewise.evaluation.task import DataError, number
from likewise.inference.loading import SavedModel
from likewise.training.result import model_card

GUARD = 1.0
"""Points of STS-B dev that an adapted encoder may lose."""

LEAST = 0.05
"""Share of the base's MRR that a candidate has to gain.

A sentence shares words with the rest of its passage, more than a query does: smaller gains did not carry over to
judged queries (docs/adapt.md).
"""


COLUMNS = ("Candidate", "MRR", "Gain", "Noise", "STS-B dev", "Negation")


@dataclass(frozen=True)
class Candidate:
    """One adapted encoder and its scores.

    Attributes:
        name: what was done, in a few words.
        mrr: mean reciprocal rank, times 100, of a held-out sentence's passage; None where the text has no passages.
        gain: `mrr` minus that of the base.
        noise: two standard errors of `gain`.
        sts_dev: Spearman on STS-B dev, times 100; None without its data.
        negation: 100 (1 - cosine) of held-out sentences and their negations; None without them.
    """

    name: str
    mrr: float | None
    gain: float | None
    noise: float | None
    sts_dev: float | None
    negation: float | None = None

    def cells(self) -> list[str]:
        """Return its row of a table, in the order of `COLUMNS`."""
        gain = "-" if self.gain is None else f"{self.gain:+.2f}"
        scores = (self.noise, self.sts_dev, self.negation)
        return [self.name, number(self.mrr), gain, *(number(score) for score in scores)]


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
    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates with their scores, the base first."""
        return tuple(Candidate(**one) for one in self.record["candidates"])


class Judge:
    """The scores of candidates beside those of the base.

    Args:
        base: reciprocal ranks of the base, (Q,); None where the text has no passages.
        sts_dev: of the base; None without data.
    """

    def __init__(self, base: np.ndarray | None, sts_dev: float | None) -> None:
        self.base, self.sts_dev = base, sts_dev

    def score(
        self, name: str, ranks: np.ndarray | None, sts_dev: float | None, negation: float | None = None
    ) -> Candidate:
        """Return the scores of a candidate, from its reciprocal ranks (Q,), STS-B dev, and distance of negations."""
        if ranks is None or self.base is None:
            return Candidate(name, None, None, None, sts_dev, negation)
        change = 100 * (ranks - self.base)
        noise = 2 * float(change.std()) / math.sqrt(len(change))
        return Candidate(name, 100 * float(ranks.mean()), float(change.mean()), noise, sts_dev, negation)

    def keeps_sts(self, candidate: Candidate) -> bool:
        """Return whether a candidate loses no more of STS-B dev than the guard allows; True without its data."""
        return candidate.sts_dev is None or self.sts_dev is None or candidate.sts_dev >= self.sts_dev - GUARD

    def best(self, candidates: Sequence[Candidate]) -> tuple[Candidate | None, str]:
        """Return the best candidate, None if the base is to stay, and the reason in a sentence."""
        kept = [one for one in candidates if self.keeps_sts(one)]
        if not kept:
            return None, f"every candidate loses more than {GUARD:.0f} point of STS-B dev"
        best = max(kept, key=lambda one: one.gain or 0.0)
        gain, noise = best.gain or 0.0, best.noise or 0.0
        least = 0.0 if self.base is None else 100 * LEAST * float(self.base.mean())
        if gain <= max(noise, least):
            return None, (
                f"no candidate finds the passages of held-out sentences enough better (best: {best.name}, "
                f"{gain:+.2f} points of MRR; noise {noise:.2f}, smallest gain that counts {least:.2f})"
            )
        return best, (
            f"it finds the passage of a held-out sentence best: MRR {best.mrr:.2f}, {best.gain:+.2f} over the base "
            f"(noise {best.noise:.2f})"
        )


def sts_dev_pairs(data: str | os.PathLike[str] | None) -> RatedPairs | None:
    """Return the pairs of STS-B dev; None if there is no data.

    Raises:
        DataError: `data` is given and holds none, or the file is malformed.
    """
    try:
        return rated_task("sts-b-dev").pairs(data)
    except DataError:
        if data is not None:
            raise
        return None


_ABOUT = """`{base}`, adapted to {passages:,} passages of text without labels. Chosen: **{chosen}**, because {reason}.

{table}

MRR: mean reciprocal rank of the passage that a held-out sentence was taken from. Noise: two standard errors. Negation:
100 (1 - cosine) of sentences and their negations, higher where 'not' is seen."""
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
    cosines: tuple[np.ndarray, np.ndarray],
) -> str:
    """Return the page.

    Args:
        facts: the facts of the record.
        queries: Q texts, and N `passages` that were searched.
        own: the row of each query's own passage, -1 without one.
        cosines: of the queries with the passages, (Q, N), by the base and by the chosen encoder.
    """
    from jinja2 import Template

    changes = [
        (queries[query], *([(passages[row], row == own[query]) for row in rows] for rows in sides))
        for query, *sides in changed_neighbours(*cosines, own)
    ]
    source = files("likewise.training").joinpath("adapt_page.html.j2").read_text(encoding="utf-8")
    template = Template(source, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return template.render(facts, columns=COLUMNS, rows=[one.cells() for one in candidates], changes=changes)


def changed_neighbours(
    before: np.ndarray, after: np.ndarray, own: Sequence[int], most: int = 8, shown: int = 3
) -> list[tuple[int, list[int], list[int]]]:
    """Return the queries whose nearest passages changed most: its number, the passages before, and those after.

    Args:
        before, after: (Q, N) cosines of Q queries with N passages.
        own: the row of each query's own passage, -1 without one.
        most: queries returned; those whose own passage moved up or down into view come first.
        shown: passages of a query.
    """
    tops = [np.argsort(-side, axis=1, kind="stable")[:, :shown].tolist() for side in (before, after)]
    changed = [
        ((own[query] in old) != (own[query] in new), len(set(new) - set(old)), query)
        for query, (old, new) in enumerate(zip(*tops, strict=True))
        if set(new) - set(old)
    ]
    changed.sort(key=lambda one: (-one[0], -one[1], one[2]))
    return [(query, tops[0][query], tops[1][query]) for _, _, query in changed[:most]]
