"""The ends of sentences in languages other than English, by the abbreviations that two libraries know.

sentencex has the abbreviations of Wikimedia's languages, choppa the rules of LanguageTool. A stop ends a sentence if
both say so: each knows abbreviations that the other does not. The abbreviations of CLDR,
which ICU applies, join true sentences of German.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from likewise.corpus.languages import likely_codes
from likewise.corpus.words import has_unspaced, without_surrogates

WITH_RULES = frozenset("ar be br ca da de el eo es fa fr ga gl is it nl pl pt ro ru sk sl sr sv ta uk".split())
"""The languages of which choppa has rules."""
_OF_ENGLISH = " the "
"""A word that spares most English paragraphs the look at their language."""
_DOUBTFUL = re.compile(r"(?:^|[\s(\[/\"'«„“‘’-])[^\W_]{0,8}(?:\.[^\W_]{1,3})*\.$")
"""A stop behind a word that is short enough for an abbreviation, or behind a number."""
_NUMBER = re.compile(r"(?:\S+\s+)?\d+\.$")
"""A part that ends with a number and has no more than one other word: 'Am 3. Tag' is not two sentences."""
_AROUND = 300  # characters that a rule looks at on each side of a stop


def ends_in_other_languages(text: str, ends_of_english: Callable[[], Iterable[int]]) -> list[int] | None:
    """Return the offsets after the sentences of a paragraph, without the end of the paragraph itself.

    Args:
        text: Paragraph.
        ends_of_english: Function that returns the ends by the rules of English, for a language without rules.

    Returns:
        None if the text is English, of an unknown language, or of a script whose own marks end sentences.
    """
    if has_unspaced(text) or (_OF_ENGLISH in text and text.isascii()):
        return None
    text = without_surrogates(text)
    codes = likely_codes(text)
    if not codes or "en" in codes:
        return None
    ends = set.intersection(*(_by_abbreviations(text, code) for code in codes))
    others: set[int] | None = None
    agreed: list[int] = []
    begin = 0
    for end in sorted(ends):
        if _DOUBTFUL.search(text, begin, end):
            if not WITH_RULES.issuperset(codes):
                others = set(ends_of_english()) if others is None else others
                is_end = end in others
            else:
                is_end = all(_ends_by_rules(text, end, code) for code in codes)
            if not is_end or _NUMBER.fullmatch(text[begin:end].strip()):
                continue
        agreed.append(end)
        begin = end
    return agreed


def _by_abbreviations(text: str, code: str) -> set[int]:
    """Return the ends that sentencex sees."""
    import sentencex

    ends, at = set(), 0
    for sentence in sentencex.segment(code, text):
        stripped = sentence.strip()
        if stripped and (place := text.find(stripped, at)) >= 0:
            at = place + len(stripped)
            ends.add(at)
    ends.discard(len(text.rstrip()))
    return ends


def _ends_by_rules(text: str, end: int, code: str) -> bool:
    """Return whether the rules of LanguageTool end a sentence at a place, by its surroundings."""
    from choppa import SrxTextIterator

    begin = max(0, end - _AROUND)
    place = begin
    for part in SrxTextIterator(_rules(), f"{code}_two", text[begin : end + _AROUND]):
        place += len(part)
        if place >= end:
            break
    return not text[end:place].strip() and place >= end and bool(text[place:].strip())


@cache
def _rules() -> Any:
    import choppa

    folder = Path(choppa.__file__).parent / "data" / "srx"
    return choppa.SrxDocument(ruleset=str(folder / "languagetool_segment.srx"))
