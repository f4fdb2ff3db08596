"""The result of an adaptation: the folder's facts, its card, and the page that shows what was chosen from.

Letters of the shapes: Q held-out queries, N passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer

from likewise.adaptation.choice import COLUMNS, Candidate
from likewise.evaluation.report import markdown_table
from likewise.inference.loading import SavedModel
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
    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates with their scores, the base first."""
        return tuple(Candidate(**one) for one in self.record["candidates"])


def form_of(model: SentenceTransformer) -> str:
    """Return the form of a model's folder, and who can load it, in one sentence."""
    own = sorted({type(module).__name__ for module in model if type(module).__module__.startswith("likewise.")})
    if not own:
        return "stock modules of sentence-transformers: any tool that reads its folders can load it"
    return (
        f"with a module of likewise ({', '.join(own)}): likewise loads it, and sentence-transformers with "
        "trust_remote_code=True where likewise is installed. For other servers adapt with --plain, or export it"
    )


_ABOUT = """`{base}`, adapted to {passages:,} passages of text without labels. Chosen: **{chosen}**, because {reason}.

The folder holds {form}.

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
        candidates: all of them, the base first.
        queries: Q texts.
        passages: N texts that were searched.
        own: the row of each query's own passage.
        cosines: of the queries with the passages, (Q, N), by the base and by the chosen encoder.
    """
    from jinja2 import Template

    changes = [
        (queries[query], *([(passages[row], row == own[query]) for row in rows] for rows in sides))
        for query, *sides in changed_neighbours(*cosines, own)
    ]
    source = files("likewise.adaptation").joinpath("page.html.j2").read_text(encoding="utf-8")
    template = Template(source, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return template.render(facts, columns=COLUMNS, rows=[one.cells() for one in candidates], changes=changes)


def changed_neighbours(
    before: np.ndarray, after: np.ndarray, own: Sequence[int], most: int = 8, shown: int = 3
) -> list[tuple[int, list[int], list[int]]]:
    """Return the queries whose nearest passages changed most: number, passages before, and passages after.

    Args:
        before, after: (Q, N) cosines of Q queries with N passages.
        own: the row of each query's own passage.
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
