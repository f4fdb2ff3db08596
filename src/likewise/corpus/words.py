"""The words of a text in any script, and text from selected words.

White space divides words. Scripts that are written without it (Chinese, Japanese, Thai, Lao, Burmese, Khmer, Tibetan)
are divided further at the word breaks of ICU, which has dictionaries for them.
"""

import random
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

UNSPACED = "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
"""The characters of scripts that are written without blanks between words, as a class of a regular expression."""
_LETTER_OF_THESE = re.compile(UNSPACED)
_RUN = re.compile(rf"{UNSPACED[:-1]}\u3005\u3007\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_OPENING = "([{<«‹“‘「『（【〈《［｛〔〖¿¡"
_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class DividedText:
    """The words of a text, with the marks of punctuation that they touch, and the white space around them.

    >>> DividedText.of("The pump (old) leaks.").words
    ('The', 'pump', '(old)', 'leaks.')
    >>> DividedText.of("水泵坏了,请修理。").words
    ('水泵', '坏', '了,', '请', '修理。')

    Attributes:
        words: N words, in order; none is empty or holds white space.
        gaps: N + 1 strings of white space: before the first word and after each word. Between words of
            a script without blanks it is "".
    """

    words: tuple[str, ...]
    gaps: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "DividedText":
        """Divide a text into its words."""
        if not has_unspaced(text):
            return cls._spaced(text)
        words: list[str] = []
        gaps: list[str] = []
        end = 0
        for match in re.finditer(r"\S+", text):
            parts = list(_parts(match[0]))
            gaps += [text[end : match.start()], *[""] * (len(parts) - 1)]
            words += parts
            end = match.end()
        return cls(tuple(words), (*gaps, text[end:]))

    @classmethod
    def _spaced(cls, text: str) -> "DividedText":
        words = text.split()
        if text == " ".join(words):
            return cls(tuple(words), ("", *[" "] * (len(words) - 1), "") if words else ("",))
        gaps, end = [], 0
        for word in words:
            begin = text.index(word, end)
            gaps.append(text[end:begin])
            end = begin + len(word)
        return cls(tuple(words), (*gaps, text[end:]))

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        """Return the very text that was divided."""
        return self.gaps[0] + "".join(word + gap for word, gap in zip(self.words, self.gaps[1:], strict=True))

    def part(self, begin: int, end: int) -> str:
        """Return the words from one position to before another, with the white space between them.

        >>> DividedText.of("The pump: 水泵坏了。").part(1, 4)
        'pump: 水泵坏'
        """
        words, gaps = self.words[begin:end], self.gaps[begin + 1 : end]
        return "".join(word + gap for word, gap in zip(words, (*gaps, ""), strict=False))

    def without(self, positions: Collection[int]) -> str:
        """Return the text without the words at some positions, and without white space around it.

        >>> DividedText.of("It was of 800km .").without((2, 3))
        'It was .'
        >>> DividedText.of("水泵 坏了,请修理。").without((1, 2))
        '水泵 请修理。'
        """
        parts: list[str] = []
        gap = ""
        for place, word in enumerate(self.words):
            gap = gap or self.gaps[place]
            if place not in positions:
                parts += (gap if parts else "", word)
                gap = ""
        return "".join(parts)

    def without_share(self, share: float, rng: random.Random) -> str:
        """Return the text without a random share of its words: of several, at least one goes and one stays.

        >>> DividedText.of("one two three four five").without_share(0.2, random.Random(0))
        'one two three five'
        """
        if len(self) < 2:
            return str(self)
        gone = min(len(self) - 1, max(1, round(share * len(self))))
        return self.without(set(rng.sample(range(len(self)), gone)))

    def replaced(self, positions: Collection[int], by: str) -> str:
        """Return the text with another word, such as a mask token, for each word at some positions.

        >>> DividedText.of("It was of 800km .").replaced((2, 3), "[MASK]")
        'It was [MASK] [MASK] .'
        """
        words = (by if place in positions else word for place, word in enumerate(self.words))
        return self.gaps[0] + "".join(word + gap for word, gap in zip(words, self.gaps[1:], strict=True))


def has_unspaced(text: str) -> bool:
    """Return whether a text contains a script that is written without blanks between its words."""
    return not text.isascii() and _LETTER_OF_THESE.search(text) is not None


def word_count(text: str) -> int:
    """Return the number of words of a text.

    >>> word_count("The pump leaks."), word_count("地下室的水泵坏了。")
    (3, 5)
    """
    return len(DividedText.of(text)) if has_unspaced(text) else len(text.split())


def with_blanks(text: str) -> str:
    """Return a text with a blank between the words of scripts that have none, for what divides texts at blanks.

    >>> with_blanks("The pump: 水泵坏了。")
    'The pump: 水泵 坏 了 。'
    """
    if not has_unspaced(text):
        return text
    return _RUN.sub(_spread, text)


def without_surrogates(text: str) -> str:
    """Return a text of the same length that ICU takes: a surrogate alone becomes U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def joined_words(words: Sequence[str]) -> str:
    """Return words as one text, with a space between two words, unless both are of scripts without spaces.

    >>> joined_words(["The", "pump:", "水泵", "坏", "了。"])
    'The pump: 水泵坏了。'
    """
    parts = list(words[:1])
    for before, after in pairwise(words):
        parts += ("" if has_unspaced(before) and has_unspaced(after) else " ", after)
    return "".join(parts)


def _spread(run: re.Match[str]) -> str:
    """Return the words of a run of letters with blanks between them, and where the run touches others."""
    before, after = run.string[max(0, run.start() - 1) : run.start()], run.string[run.end() : run.end() + 1]
    sides = ("" if not before or before.isspace() else " ", "" if not after or after.isspace() else " ")
    return " ".join(_breaks(run[0])).join(sides)


def _parts(token: str) -> Iterator[str]:
    """Yield the words of a text without white space; a mark goes with the word that it opens or closes."""
    if not has_unspaced(token):
        yield token
        return
    buffer, is_word = "", False
    for piece in _breaks(token):
        starts = bool(_LETTER.search(piece)) or piece[0] in _OPENING
        if starts and is_word:
            yield buffer
            buffer, is_word = "", False
        buffer += piece
        is_word = is_word or _LETTER.search(piece) is not None
    if buffer:
        yield buffer


def _breaks(text: str) -> list[str]:
    """Return a text in the pieces between ICU's word breaks."""
    from icu4py.breakers import WordBreaker

    pieces, end = [], 0
    for piece in WordBreaker(without_surrogates(text), ""):
        pieces.append(text[end : end + len(piece)])
        end += len(piece)
    return pieces
