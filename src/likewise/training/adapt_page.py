"""The card and the page of an adapted encoder: candidates, the choice, and neighbours that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from likewise.training.cards import model_card

_ABOUT = """`{base}`, adapted to {passages:,} passages of text without labels. Chosen: **{chosen}**, because {reason}.

{table}

MRR: mean reciprocal rank of the passage that a held-out sentence was taken from. Noise: two standard errors. Negation:
100 (1 - cosine) of sentences and their negations, higher where 'not' is seen."""
_FILES = "`report.html` shows neighbours that changed; options, versions and all scores are in `likewise.json`."

COLUMNS = ("Candidate", "MRR", "Gain", "Noise", "STS-B dev", "Negation")

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ padding: .3rem .8rem; text-align: right; border-bottom: 1px solid #8884; }}
th:first-child, td:first-child {{ text-align: left; }}
tr.chosen {{ font-weight: 600; background: #4a90d922; }}
section {{ border-top: 1px solid #8884; padding: .5rem 0; }}
.sides {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem; }}
.own {{ background: #2e9e4f2e; }}
ol {{ padding-left: 1.4rem; }} li {{ margin: .4rem 0; overflow-wrap: anywhere; }}
</style></head><body>
<h1>{title}</h1>
<p>{about}</p>
<p>Chosen: <strong>{chosen}</strong>, because {reason}.</p>
<h2>What was tried</h2>
<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>
<p>MRR: the mean reciprocal rank of the passage that a held-out sentence was taken from, among {pool:,}
passages, times 100. Noise: two standard errors of the gain. Negation: 100 (1 - cosine) of sentences and their
negations; higher where 'not' is seen.</p>
<h2>Neighbours that changed</h2>
{changes}
</body></html>
"""

_CHANGE = """<section><p><strong>{query}</strong></p><div class="sides">
<div><h3>Base</h3><ol>{before}</ol></div><div><h3>Adapted</h3><ol>{after}</ol></div></div></section>
"""


def cells(candidate: Mapping[str, Any]) -> list[str]:
    """Return the row of a candidate, in the order of `COLUMNS`."""
    scores = {name: "-" if score is None else f"{score:.2f}" for name, score in candidate.items() if name != "name"}
    gain = "-" if candidate["gain"] is None else f"{candidate['gain']:+.2f}"
    return [candidate["name"], scores["mrr"], gain, *(scores[name] for name in ("noise", "sts_dev", "negation"))]


def adapted_card(facts: Mapping[str, Any], model: Any) -> str:
    """Return the text of README.md."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "| --- |" + " ---: |" * (len(COLUMNS) - 1)]
    lines += ["| " + " | ".join(cells(one)) + " |" for one in facts["candidates"]]
    about = _ABOUT.format_map({**facts, "passages": facts["corpus"]["passages"], "table": "\n".join(lines)})
    return model_card(model, "adapt", "A sentence encoder adapted", about, _FILES)


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
    tops = [np.argsort(-side, axis=1, kind="stable")[:, :shown] for side in (before, after)]
    found: list[tuple[int, int, int]] = []
    for query, (old, new) in enumerate(zip(*tops, strict=True)):
        different = len(set(new.tolist()) - set(old.tolist()))
        moved = int((own[query] in old) != (own[query] in new))
        if different:
            found.append((-moved, -different, query))
    return [(query, tops[0][query].tolist(), tops[1][query].tolist()) for _, _, query in sorted(found)[:most]]


def adapted_page(
    facts: Mapping[str, Any],
    changes: Sequence[tuple[str, Sequence[tuple[str, bool]], Sequence[tuple[str, bool]]]],
) -> str:
    """Return the page.

    Args:
        facts: the facts of the record.
        changes: a query, and its nearest passages before and after, each with True for the query's own passage.
    """
    corpus = facts["corpus"]
    offered = ", ".join(f"{count:,} {kind}" for kind, count in corpus["pairs"].items())
    rows = "".join(
        f'<tr class="{"chosen" if one["name"] == facts["chosen"] else ""}">'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells(one))
        + "</tr>"
        for one in facts["candidates"]
    )
    return _PAGE.format(
        title="An encoder adapted to a text",
        about=f"Base {escape(facts['base'])}; {corpus['passages']:,} passages, which offer these pairs: {offered}.",
        chosen=escape(facts["chosen"]),
        reason=escape(facts["reason"]),
        heads="".join(f"<th>{escape(name)}</th>" for name in COLUMNS),
        rows=rows,
        pool=corpus["searched"],
        changes="".join(
            _CHANGE.format(query=escape(query), before=_listed(before), after=_listed(after))
            for query, before, after in changes
        )
        or "<p>None: the base was kept.</p>",
    )


def _listed(passages: Sequence[tuple[str, bool]]) -> str:
    return "".join(
        f"<li{' class=own' if own else ''}>{escape(text[:280])}{'…' if len(text) > 280 else ''}</li>"
        for text, own in passages
    )
