"""The HTML pages: self-contained files that need no network and follow the reader's light or dark setting."""

import base64
import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from importlib.resources import files
from pathlib import Path
from typing import Any

from likewise.comparison import tables
from likewise.comparison.outcome import Comparison
from likewise.comparison.pictures import check_extra
from likewise.evaluation.rank_errors import ErrorAnalysis

_WORDS = re.compile(r"\w+(?:['’]\w+)*|\s+|[^\w\s]")

#: Words of a sentence, and whether each stands in the other sentence of the pair as well.
Marked = list[tuple[str, bool]]

#: The pictures in their order: the file's name, what is seen, and how it is read.
PICTURES = {
    "grid": (
        "Scores over a grid of options",
        "The mean over the seeds; bars are the standard deviation. The dotted line is the unchanged base.",
    ),
    "curves": (
        "Training curves",
        "The score that selects the checkpoint, at each evaluation; update 0 is the encoder before training. Lines are "
        "means over the seeds, bands reach from the lowest seed to the highest.",
    ),
    "losses": (
        "Training losses",
        "A line for each seed. The methods have different losses, so only their shapes compare.",
    ),
    "path": (
        "Alignment and uniformity",
        "Every evaluation is a point: hollow and large before training, filled and large at the end (as figure 8 of "
        "ArcCSE, Zhang et al. 2022). Lower is better for both: a path to the lower left gains in both. Grey marks have "
        "no training; one far outside appears in the legend alone. Means over the seeds.",
    ),
    "similarity": (
        "Distributions of cosines",
        "How similar a sentence is to itself under dropout, to its negation and to another sentence, and how similar "
        "rated pairs are, by the model of the first seed. The line in each shape is the median.",
    ),
    "maps": (
        "A map of sentences under dropout",
        "Three related sentences, each encoded 30 times under dropout, scaled to length 1 and laid out by t-SNE (as "
        "figure 1 of ArcCSE). Each map is laid out by itself: see whether the groups separate; distances between "
        "groups, sizes and directions mean little. The numbers are the mean cosines of two views of one sentence, and "
        "of two sentences.",
    ),
    "errors": (
        "Ranks of all pairs",
        "Each point is a pair; on the line the two ranks agree. Marked are the worst pairs.",
    ),
}


def page(found: Comparison, pictures: Mapping[str, Path]) -> str:
    """Return the page of a comparison."""
    worst = {row.label: errors for row in found.rows if (errors := row.inspection.get("worst"))}
    return _rendered(f"Comparison of {len(found.rows)} methods", tables.about(found), pictures, worst, found)


def errors_page(analysis: ErrorAnalysis, headline: str, about: str, picture: Path) -> str:
    """Return the page of an error analysis."""
    return _rendered(headline, about, {"errors": picture}, {analysis.model: analysis.to_dict()})


def _rendered(
    headline: str, about: str, pictures: Mapping[str, Path], worst: Mapping[str, Any], found: Comparison | None = None
) -> str:
    check_extra()
    from jinja2 import Environment, StrictUndefined

    source = files("likewise.comparison").joinpath("page.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    shown = [
        (name, *PICTURES[name], base64.b64encode(pictures[name].read_bytes()).decode("ascii"))
        for name in PICTURES
        if name in pictures
    ]
    among: dict[int, list[str]] = {}  # the methods that have a pair among their worst, by its index
    for label, errors in worst.items():
        for pair in errors["worst"]:
            among.setdefault(pair["index"], []).append(label)
    template = environment.from_string(source, {"tables": tables, "differences": differences, "rank": rank})
    return template.render(headline=headline, about=about, pictures=shown, worst=worst, among=among, found=found)


def rank(value: float) -> str:
    """Return a rank as text, with '.5' where an even number of pairs shares it.

    >>> rank(3564.0), rank(3.5)
    ('3,564', '3.5')
    """
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def differences(first: str, second: str) -> tuple[Marked, Marked]:
    """Return the parts that two sentences have in common, in order and ignoring case.

    Returns:
        The parts of each sentence with True for what is in both; joined they give the sentence back.

    >>> differences("I oppose it.", "I support it.")[0]
    [('I ', True), ('oppose', False), (' it.', True)]
    """
    left, right = _WORDS.findall(first), _WORDS.findall(second)
    # A blank is in both only next to a word that is.
    matcher = SequenceMatcher(str.isspace, [w.lower() for w in left], [w.lower() for w in right], autojunk=False)
    sides: tuple[Marked, Marked] = ([], [])
    for what, *ends in matcher.get_opcodes():
        for side, part in zip(sides, (left[ends[0] : ends[1]], right[ends[2] : ends[3]]), strict=True):
            if part:
                side.append(("".join(part), what == "equal"))
    return sides
