"""`likewise duplicates` and `topics`: which texts say the same, and what texts are about."""

from pathlib import Path
from typing import Annotated, Any, Optional

from typer import Argument, Option, echo

from likewise.cli.groups import typed
from likewise.cli.shared_options import (
    WHOLE_TEXTS,
    EngineOption,
    OverwriteOption,
    PrecisionOption,
    QuietOption,
    ReplaceOption,
    ResumeOption,
    end_partial,
    given,
    with_corpus,
)
from likewise.errors import counted, printable

_REASONS = {
    "negation": "a negation",
    "numbers": "a number",
    "opposites": "opposite words",
    "names": "another name",
    "order": "the order of their words",
    "the rest": "what is left without the sentences that both have",
    "other words": "too few words in common",
}
TextsArgument = Annotated[list[Path], Argument(help="Files, folders or patterns; repeatable.")]
EncoderOption = Annotated[str, Option(help="A model's folder, its hub name, or bundled:minilm.")]
_INDENT = 10
_ENOUGH = 30
"""Texts; pairs of fewer tell nothing."""
_USUAL = 0.1
"""A threshold that is no further above the cosines of any two texts tells nothing."""
_LARGEST = 15


@typed
@with_corpus(without=WHOLE_TEXTS)
def duplicates(
    *,
    texts: TextsArgument,
    model: EncoderOption = "bundled:minilm",
    out: Annotated[
        Optional[str],
        Option(
            help="The JSONL file of groups: for each the text that is kept, and its duplicates with their places and "
            "cosines."
        ),
    ] = None,
    keep_one: Annotated[
        Optional[str],
        Option(
            help="A file for the texts that are kept: whole rows if it ends in .jsonl or .csv, otherwise one text on "
            "each line. What is left out is written beside it, as NAME.left-out.jsonl, with the reasons."
        ),
    ] = None,
    threshold: Annotated[
        float, Option(help="The lowest cosine at which two texts count as duplicates, from -1 to 1.")
    ] = 0.9,
    words: Annotated[
        float,
        Option(
            help="The lowest share of words that duplicates have in common. 0 compares vectors alone: texts that "
            "differ by a negation, a number, a name, an opposite, or behind what the model reads, are then duplicates."
        ),
    ] = 0.3,
    engine: EngineOption = "auto",
    precision: PrecisionOption = "fp32",
    seed: Annotated[int, Option(help="Fixes the cells in which more than 100,000 texts are compared.")] = 1,
    overwrite: ReplaceOption = False,
    quiet: QuietOption = False,
    corpus_options: Any,
) -> None:
    """Find the texts that say what an earlier one says."""
    arguments = given(locals())
    from likewise.clusters.duplicates import duplicates as find_duplicates

    found = find_duplicates(**arguments)
    if not quiet:
        _show_duplicates(found)
    if keep_one is not None and not quiet:
        from likewise.clusters.duplicates import left_out_path

        left_out = found.texts - found.kept
        echo(f"Written: {found.kept:,} in {keep_one}, {left_out:,} left out in {left_out_path(keep_one)}")
    end_partial(found.is_partial)


def _show_duplicates(found: Any) -> None:
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
    if found.empty:
        repeated += f", {found.empty:,} are empty"
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
    if found.language != "English":
        what = f"Most texts are {found.language}" if found.language else "The language of the texts is not known"
        console.print(
            f"{what}: without a list of its opposites, only texts of the same words, but for misspellings, count"
        )
    if found.by_threshold:
        levels = ", ".join(f"{count:,} by {level:g}" for level, count in found.by_threshold.items())
        console.print(f"Near duplicates by other thresholds, about: {levels}")


@typed
@with_corpus(without=WHOLE_TEXTS)
def topics(
    *,
    texts: TextsArgument,
    model: EncoderOption = "bundled:minilm",
    out: Annotated[str, Option(help="The folder for topics.jsonl, assignments.jsonl and map.html.")],
    number: Annotated[
        Optional[int],
        Option(help="The number of topics; by default as many as the text has."),
    ] = None,
    smallest: Annotated[int, Option(help="The fewest texts of a topic.")] = 10,
    language: Annotated[
        Optional[str],
        Option(help="The language of the text, whose stop words are left out of names; found out by default."),
    ] = None,
    engine: EngineOption = "auto",
    precision: PrecisionOption = "fp32",
    seed: Annotated[int, Option(help="Fixes the sample, the topics and the map.")] = 1,
    quiet: QuietOption = False,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    corpus_options: Any,
) -> None:
    """Find what texts are about: topics with names, their most typical texts, and a map."""
    arguments = given(locals())
    from likewise.clusters.topics import topics as find_topics

    found = find_topics(**arguments)
    if not quiet:
        _show_topics(found)
    end_partial(found.is_partial)


def _show_topics(found: Any) -> None:
    """Print the largest topics with an example of each."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    texts = int((found.of >= 0).sum())
    console.print(
        f"{counted(len(found.topics), 'topic')} of {counted(texts, 'text')}: {found.path / 'map.html'}", soft_wrap=True
    )
    if empty := len(found.of) - texts:
        console.print(f"{counted(empty, 'empty text')} without a topic")
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
