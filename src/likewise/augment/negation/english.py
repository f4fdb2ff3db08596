"""The check that sentences are English, the only language with negations and exclusions."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from likewise.corpus.languages import language_of
from likewise.errors import LikewiseError

_LOOKED_AT = 200
"""Number of sentences that show the language."""
_ENOUGH = 100  # characters; of a text without a Latin letter, any number
_LATIN = re.compile("[A-Za-z]")


class NotEnglishError(LikewiseError):
    """Raised if sentences are not in English, the only language with negations."""


def check_english(sentences: Iterable[str]) -> Iterator[str]:
    """Return sentences after a check of the language of the first sentences.

    Raises:
        NotEnglishError: If most of the first sentences are in another language.
    """
    left = iter(sentences)
    first = list(islice(left, _LOOKED_AT))
    is_enough = sum(map(len, first)) >= _ENOUGH or not any(map(_LATIN.search, first))
    if is_enough and (language := language_of(first)) not in ("", "English"):
        raise NotEnglishError(
            f"these sentences are in {language} ({first[0][:60]!r}), but negations and exclusions are available for "
            f"English only: give English text, or use a method without them, such as arccse or simcse"
        )
    return chain(first, left)
