"""The card and the page of an adapted encoder: candidates, the choice, and neighbours that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from likewise.evaluation.report import markdown_table
from likewise.training.adapt_choice import COLUMNS, Candidate
from likewise.training.result import model_card

Passages = Sequence[tuple[str, bool]]
"""Passages near a query, each with True for the query's own."""

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
    facts: Mapping[str, Any], candidates: Sequence[Candidate], changes: Sequence[tuple[str, Passages, Passages]]
) -> str:
    """Return the page.

    Args:
        facts: the facts of the record.
        changes: a query, and its nearest passages before and after.
    """
    from jinja2 import Template

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
