"""Edits of a sentence by character offsets, which preserve its case, punctuation and spacing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Token


def end_of(token: Token) -> int:
    """Return the offset of the end of a token."""
    return token.idx + len(token.text)


def word_after(token: Token, n: int = 1) -> str:
    """Return the n-th word after a token in lower case, '' past the last one."""
    return token.nbor(n).lower_ if token.i + n < len(token.doc) else ""


def like(word: str, model: str) -> str:
    """Return `word` in the case of `model`: in capitals, or with a first capital.

    >>> like("went", "Go"), like("went", "GO"), like("went", "go")
    ('Went', 'WENT', 'went')
    """
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


def lower_first(token: Token) -> str:
    """Return the token as written inside a sentence: names, acronyms and 'I' keep their capital."""
    text: str = token.text
    if token.tag_ in ("NNP", "NNPS") or text == "I" or text.startswith(("I'", "I’")) or text[1:] != text[1:].lower():
        return text
    return text[:1].lower() + text[1:]


@dataclass
class Edits:
    """Replacements of spans of one sentence, applied together from right to left."""

    text: str
    changes: list[tuple[int, int, str]] = field(default_factory=list)

    def replace(self, token: Token, word: str, *, last: Token | None = None, keep_case: bool = True) -> None:
        """Replace a token (or the span up to `last`) by `word`, in its case unless `keep_case` is off.

        An empty word removes the span.
        """
        if not word:
            self.drop(token, last)
        else:
            self.changes.append((token.idx, end_of(last or token), like(word, token.text) if keep_case else word))

    def insert(self, offset: int, text: str) -> None:
        """Insert `text` at an offset."""
        self.changes.append((offset, offset, text))

    def put_before(self, token: Token, text: str) -> None:
        """Insert `text` before a token, which gives up the capital of a first word."""
        self.insert(token.idx, text)
        self.replace(token, lower_first(token), keep_case=False)

    def drop(self, first: Token, last: Token | None = None) -> None:
        """Remove a token (or the span up to `last`) with one of the spaces next to it."""
        last = first if last is None else last
        start, stop = first.idx, end_of(last)
        if stop < len(self.text) and self.text[stop].isspace():
            stop += 1
        elif start > 0 and self.text[start - 1].isspace():
            start -= 1
        self.changes.append((start, stop, ""))

    def result(self) -> str:
        """Return the edited text; the new first word takes over the capital of the old one."""
        text = self.text
        # From the right; of two changes at one offset, the earlier one comes first.
        for _, (start, stop, new) in sorted(
            enumerate(self.changes), key=lambda one: (one[1][:2], one[0]), reverse=True
        ):
            text = text[:start] + new + text[stop:]
        before, after = _first_letter(self.text), _first_letter(text)
        if before is not None and after is not None and self.text[before].isupper():
            text = text[:after] + text[after].upper() + text[after + 1 :]
        return text.upper() if self.text.isupper() else text


def _first_letter(text: str) -> int | None:
    """Return the offset of the first letter."""
    return next((at for at, character in enumerate(text) if character.isalpha()), None)
