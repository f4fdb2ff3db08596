"""Cleaning of text: invisible characters, forms of letters, and repeated texts."""

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import TypeVar
from unicodedata import normalize

_T = TypeVar("_T")
_INVISIBLE = re.compile(
    "\u00ad[ \t\r]*\n[ \t]*"  # a word that is divided at the end of a line
    # colors and links of a terminal, as logs have
    "|\u001b(?:\\[[0-9;?]*[A-Za-z]|\\(B|\\]8;[^\u0007\u001b]{0,2000}(?:\u0007|\u001b\\\\))"
    "|[\u0000-\u0008\u000e-\u001f\u007f\u00ad\u200b\u200e\u200f\u2060\ufeff\ud800-\udfff]"
)
_STYLED = re.compile("[\ufb00-\ufb06\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f\U0001d400-\U0001d7ff]+")


def without_invisible(text: str) -> str:
    """Return a text in Unicode's composed form (NFC), without invisible characters.

    Control characters, soft hyphens, direction and byte order marks and lone surrogates go. Joiners stay: they spell.

    >>> without_invisible("Zu\u0308rich\u200b") == "Zürich"
    True
    >>> without_invisible("the turbo\u00ad\\n charger")
    'the turbocharger'
    """
    text = _INVISIBLE.sub("", text)
    return text if text.isascii() else normalize("NFC", text)


def in_plain_letters(text: str) -> str:
    """Return a text as a model knows its letters: without ligatures, styles of letters, and forms of another width.

    >>> in_plain_letters("e\ufb03cient \uff50\uff55\uff4d\uff50s, \uff76\uff9e")
    'efficient pumps, \u30ac'
    """
    return text if text.isascii() else _STYLED.sub(lambda styled: normalize("NFKC", styled[0]), text)


def without_surrogates(text: str) -> str:
    """Return a text with '?' for each lone surrogate, which no tokenizer takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def digest_of(text: str) -> bytes:
    """Return a fingerprint of a text: 16 bytes, equal for equal texts."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def unrepeated(
    items: Iterable[_T], text_of: Callable[[_T], str], repeated: Callable[[_T], object] = lambda _: None
) -> Iterator[_T]:
    """Yield the items with new texts; the memory is about 100 bytes per item.

    Args:
        repeated: Function that receives each repeated item.
    """
    seen: set[bytes] = set()
    for item in items:
        if (digest := digest_of(text_of(item))) not in seen:
            seen.add(digest)
            yield item
        else:
            repeated(item)
