"""`likewise duplicates` and `topics`: which texts say the same, and what texts are about."""

from __future__ import annotations

from typing import Any

from likewise.cli.commands import calls
from likewise.errors import counted, printable

_REASONS = {
    "negation": "a negation",
    "numbers": "a number",
    "opposites": "opposite words",
    "names": "another name",
    "other words": "too few words in common",
}
_ARGUMENT = {"texts": "Files, folders or patterns, as `index` takes them; repeatable."}
_INDENT = 10
_ENOUGH = 30
"""Texts; pairs of fewer tell nothing."""
_USUAL = 0.1
"""A threshold that is no further above the cosines of any two texts tells nothing."""
_LARGEST = 15


@calls(
    "likewise:duplicates",
    arguments=("texts",),
    texts={
        "texts": "Files, folders or patterns; repeatable.",
        "model": "A model's folder, its hub name, or bundled:minilm.",
    },
    leave_out=("min_words", "max_words", "deduplicate"),
)
def duplicates(found: Any) -> None:
    """Print counts, and pairs near the threshold to judge it by."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)

    def show(heading: str, pairs: Any) -> None:
        if not pairs:
            return
        console.print(Text(f"\n{heading}", "bold"))
        for pair in pairs:
            why = f"({_REASONS[pair.reason]})  " if pair.reason else ""
            console.print(Text.assemble((f"  {pair.cosine:.3f}  ", "cyan"), _shortened(pair.kept, console)))
            console.print(Text.assemble((f"         {why}", "dim"), _shortened(pair.text, console, len(why))))

    repeated = f"{found.exact:,} repeat another word for word, {found.near:,} more say the same"
    console.print(f"{counted(found.texts, 'text')}: {repeated}; {found.kept:,} are kept", soft_wrap=True)
    show(f"Just above the threshold of {found.threshold:g}: duplicates", found.above)
    show("Just below it: kept", found.below)
    show("Above it, but kept, for what only one of the two says", found.apart)
    if found.reasons:
        told = ", ".join(f"{count:,} by {_REASONS[reason]}" for reason, count in found.reasons.items())
        console.print(f"\nKept by their words: {told}")
    usual = f"one in a hundred pairs drawn at random has a cosine of {found.at_random:.2f} or more"
    if found.texts >= _ENOUGH:
        low = found.at_random >= found.threshold - _USUAL
        console.print(
            f"\nWith this encoder {usual}: the threshold is too low for it" if low else f"\nTo compare: {usual}"
        )
    if found.by_threshold:
        levels = ", ".join(f"{count:,} by {level:g}" for level, count in found.by_threshold.items())
        console.print(f"Near duplicates by other thresholds, about: {levels}")


@calls(
    "likewise:topics",
    arguments=("texts",),
    defaults={"out": ...},
    texts={
        "texts": "Files, folders or patterns; repeatable.",
        "model": "A model's folder, its hub name, or bundled:minilm.",
    },
    leave_out=("min_words", "max_words", "deduplicate"),
)
def topics(found: Any) -> None:
    """Print the largest topics with an example of each."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    texts = len(found.of)
    console.print(
        f"{counted(len(found.topics), 'topic')} of {counted(texts, 'text')}: {found.path / 'map.html'}", soft_wrap=True
    )
    for topic in found.topics[:_LARGEST]:
        head = (f"{topic.size:>8,}  ", "cyan")
        console.print(Text.assemble(head, (printable(topic.name), "bold")), soft_wrap=True)
        console.print(Text(f"          {_shortened(topic.examples[0], console)}", "dim"))
    if len(found.topics) > _LARGEST:
        console.print(
            f"          and {len(found.topics) - _LARGEST:,} more in {found.path / 'topics.jsonl'}", soft_wrap=True
        )


def _shortened(text: str, console: Any, taken: int = 0) -> str:
    """Return the beginning of a text that fits on a line of the terminal."""
    width = max(30, console.width - _INDENT - taken)
    return printable(text if len(text) <= width else f"{text[: width - 1]}…")
