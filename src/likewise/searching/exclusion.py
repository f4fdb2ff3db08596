"""Queries that exclude something, divided into what they ask for and what they do not want.

An encoder and BM25 alike take the excluded words for wanted ones. Only phrases that are an order to leave something out
are cues: 'other than', 'except' and 'without' alone often name the very thing that the answer is about.
"""

import re

_MENTIONING = (
    r"(?:mentioning|including|discussing|referring\s+to|(?:any\s+)?(?:mention|reference|discussion)s?\s+(?:of|to))"
)
_NOT = r"(?:do\s+not|don['’]t)"
_CUES = "|".join(
    (
        r"excluding",
        r"(?:but\s+)?not\s+including",
        r"leaving\s+out",
        rf"without\s+{_MENTIONING}",
        rf"avoiding(?:\s+{_MENTIONING})?",
        rf"(?:but\s+)?{_NOT}\s+(?:mention|include|discuss|talk\s+about|refer\s+to)",
    )
)
_PHRASE = re.compile(rf"[\s,;(]*\b(?:but\s+)?(?:{_CUES})\s+([^,.;:?!()]+)[),]*", re.IGNORECASE)


def divided(query: str) -> tuple[str, str]:
    """Divide a query into what it asks for and what it excludes; the second is "" if it excludes nothing.

    An excluded phrase ends at the next punctuation mark.

    >>> divided("What did Nietzsche write (excluding Zarathustra) and when?")
    ('What did Nietzsche write and when?', 'Zarathustra')
    >>> divided("Tell me about almonds but do not mention their place of origin")
    ('Tell me about almonds', 'their place of origin')
    >>> divided("standards other than IFRS")
    ('standards other than IFRS', '')
    """
    excluded = [found.group(1).strip() for found in _PHRASE.finditer(query)]
    asked = re.sub(r"\s+([.?!])", r"\1", " ".join(_PHRASE.sub(" ", query).split()))
    if not excluded or not re.search(r"\w", asked):
        return query, ""
    return asked, " ".join(excluded)
