"""`likewise duplicates`: which texts say the same."""

from typing import TYPE_CHECKING

from typer import echo

from likewise.cli.from_function import with_function
from likewise.cli.groups import typed
from likewise.cli.shared_options import ReplaceOption, end_partial
from likewise.errors import counted, printable
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from likewise.searching.duplicates.duplicates import Duplicates, NearPair

_REASONS = {
    "negation": "a negation",
    "numbers": "a number",
    "opposites": "opposite words",
    "names": "another name",
    "order": "the order of their words",
    "the rest": "what is left without the sentences that both have",
    "other words": "too few words in common",
}
ENCODER = "A model's folder, its hub name, or bundled:minilm."
_INDENT = 10
_ENOUGH = 30
"""Texts; pairs of fewer tell nothing."""
_USUAL = 0.1
"""A threshold that is no further above the cosines of any two texts tells nothing."""


@typed
@with_function(
    "searching/duplicates/duplicates.py:duplicates",
    arguments=["texts"],
    kinds={"overwrite": ReplaceOption},
    texts={"model": ENCODER},
)
def duplicates(arguments: Record) -> None:
    """Find the texts that say what an earlier one says."""
    from likewise.searching.duplicates.duplicates import duplicates as find_duplicates
    from likewise.searching.duplicates.duplicates import left_out_path

    result = find_duplicates(**arguments)
    if not arguments["quiet"]:
        _show_duplicates(result)
        if (keep_one := arguments.get("keep_one")) is not None:
            left_out = f"{result.texts - result.kept:,} left out in {left_out_path(keep_one)}"
            echo(f"Written: {result.kept:,} in {keep_one}, {left_out}")
    end_partial(result.is_partial)


def _show_duplicates(result: "Duplicates") -> None:
    """Print counts, and pairs near the threshold to judge it by."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, emoji=False)

    def show(heading: str, pairs: "Sequence[NearPair]") -> None:
        if not pairs:
            return
        console.print(Text(f"\n{heading}", "bold"))
        for pair in pairs:
            why = f"({_REASONS[pair.reason]})  " if pair.reason else ""
            console.print(Text.assemble((f"  {pair.cosine:.3f}  ", "cyan"), _shortened(pair.kept, console)))
            console.print(Text.assemble((f"         {why}", "dim"), _shortened(pair.text, console, len(why))))

    repeated = f"{result.exact:,} repeat another exactly, {result.near:,} more say the same"
    if result.empty:
        repeated += f", {result.empty:,} are empty"
    console.print(f"{counted(result.texts, 'text')}: {repeated}; {result.kept:,} are kept", soft_wrap=True)
    show(f"Just above the threshold of {result.threshold:g}: duplicates", result.above)
    show("Just below it: kept", result.below)
    show("Above it, but kept, for what only one of the two says", result.apart)
    if result.reasons:
        told = ", ".join(f"{count:,} by {_REASONS[reason]}" for reason, count in result.reasons.items())
        console.print(f"\nKept by their words: {told}")
    usual = f"one in a hundred pairs drawn at random has a cosine of {result.at_random:.2f} or more"
    if result.texts >= _ENOUGH:
        low = result.at_random >= result.threshold - _USUAL
        console.print(
            f"\nWith this encoder {usual}: the threshold is too low for it" if low else f"\nTo compare: {usual}"
        )
    if result.language != "English":
        what = f"Most texts are {result.language}" if result.language else "The language of the texts is not known"
        console.print(
            f"{what}: without a list of its opposites, only texts of the same words, but for misspellings, count"
        )


def _shortened(text: str, console: "Console", taken: int = 0) -> str:
    """Return the beginning of a text that fits on a line of the terminal."""
    width = max(30, console.width - _INDENT - taken)
    return printable(text if len(text) <= width else f"{text[: width - 1]}…")
