"""Sentence splitting of prose, and the rule that distinguishes prose from one sentence per line.

The rule of `split="auto"`, on the first 500 lines (at most 64 KiB) of a file, without blank ones:

1. Wrapped prose: of the pairs of neighboring lines, 30% or more continue (a line that ends no sentence, then
   one that begins with a small letter), and most of these were full: the next word would take the line past
   80% of the usual greatest length. Also 10% or more of the lines begin with a capital and 5% or more hold a
   stop, so that no list of loose sentences, however written, is mistaken for it.
2. Prose with a paragraph a line: 15% or more of the lines hold a further sentence of three words or more that
   does not begin with a small letter. (English paragraphs: 64% of the lines; the corpora of SentEval and the
   STS tasks, with one sentence per line and often in lower case: 0 to 2%, at most 10%.)
3. A sentence a line: anything else.

Wrapped lines are joined up to the next blank line; otherwise a line is a paragraph. Prose all in small
letters is not recognised: ask for it with `split="prose"`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise

from likewise.corpus.sentence_ends import ends_in_other_languages
from likewise.corpus.words import word_count

Placed = tuple[int, str]
"""A text after the number of the line where it begins."""

JOINING = r"(?:and|or|und|oder|bzw\.|sowie|et|ou|y|o|e|en|of|og|och)"
"""Words between the halves of two compounds, of which the first one ends in a hyphen: pre- and post-war."""
PARAGRAPH_LIMIT = 1 << 16
"""Characters of a paragraph that are held before its sentences are given out, all but the last."""

_STOP = re.compile(r"\w[.!?…。！？][\"'’”»)\]]*(?:\s|$)")
_ENDS = re.compile(r"[.!?…:;。！？][\"'’”»)\]]*$")


_OTHER_STOPS = re.compile(
    "[。！？｡؟۔।॥։።။។]+[\"'”’»）)」』】〉》\\]]*"  # of Chinese, Arabic, Urdu, Hindi, Armenian, Amharic, Burmese, Khmer
    r"|(?<=[.!?…])\s+(?=[¿¡])"
)
_GREEK_QUESTION = re.compile("[\u0370-\u03ff\u1f00-\u1fff];\\s")
_OPENING, _CLOSING = "「『“（《〈【", "」』”）》〉】"
_QUOTATION = 200  # characters; of a longer one, each sentence counts
_THAI_GAP = re.compile("(?<=[\u0e00-\u0eff]) +(?=[\u0e00-\u0eff])")
_OTHER_SIGNS = re.compile("[¿¡\u0530-\u1fff\u3000-\uffff]")
_THAI_CLAUSE = 40  # characters; Thai and Lao have a blank between sentences, and between some clauses


_JOINED = re.compile(
    "[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)  # and their punctuation
_JOINED_STOPS = "。！？、，；：」』）"
_QUOTES = "“”‘’"  # of Chinese, too


def gap(before: str, after: str) -> str:
    """Return the separator of two lines or sentences of a paragraph: a blank, or nothing in Chinese or Japanese.

    >>> gap("The pump leaks.", "It is old."), gap("水泵坏了。", "请修理。"), gap("“坏了。”", "他说")
    (' ', '', '')
    """
    last, first = before.rstrip(_QUOTES)[-1:], after.lstrip(_QUOTES)[:1]
    return "" if _JOINED.match(last) and (_JOINED.match(first) or last in _JOINED_STOPS) else " "


def joined(texts: Sequence[str]) -> str:
    """Return the lines or sentences of a paragraph in one string."""
    return "".join(_with_gaps(texts))


def _with_gaps(texts: Sequence[str]) -> list[str]:
    """Return the lines or sentences of a paragraph, each with the text after it."""
    return [text + gap(text, after) for text, after in pairwise(texts)] + list(texts[-1:])


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return (begin, end) of each sentence of a paragraph; spans may include the white space between.

    They come from nupunkt in English, and from the agreement of two libraries in other languages with blanks
    between words (see `sentence_ends`). They are divided further at the stops of other scripts.

    >>> text = "Dr. Smith went. He left!"
    >>> [text[a:b].strip() for a, b in sentence_spans(text)]
    ['Dr. Smith went.', 'He left!']
    >>> [(a, b) for a, b in sentence_spans("水泵坏了。漏油吗？")]
    [(0, 5), (5, 9)]
    """
    import nupunkt  # loads its model at the first call

    spans = nupunkt.sent_spans(text)
    if len(spans) > 1 or _GREEK_QUESTION.search(text):
        ends = ends_in_other_languages(text, lambda: (begin + len(text[begin:end].rstrip()) for begin, end in spans))
        if ends is not None:
            spans = list(pairwise([0, *ends, len(text)]))
    if text.isascii() or not _OTHER_SIGNS.search(text):
        return spans
    return [part for begin, end in spans for part in _divided(text, begin, end)]


def _divided(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of a span at the stops of scripts that nupunkt does not know."""
    stops = [stop.end() for stop in _OTHER_STOPS.finditer(text, begin, end) if not _goes_on(text, begin, stop)]
    gaps = [gap.end() for gap in _THAI_GAP.finditer(text, begin, end)]
    for stop in sorted([*stops, *gaps]):
        is_gap = bool(gaps) and stop not in stops
        if text[begin:stop].strip() and not (is_gap and stop - begin < _THAI_CLAUSE) and text[stop:end].strip():
            yield begin, stop
            begin = stop
    yield begin, end


def _goes_on(text: str, begin: int, stop: re.Match[str]) -> bool:
    """Return whether a sentence goes on behind a stop: within a quotation, or behind its end ('「壊れた。」と')."""
    before = text[max(begin, stop.start() - _QUOTATION) : stop.end()]
    opened = max(map(before.rfind, _OPENING))
    closed = max(map(before.rfind, _CLOSING))
    if opened > closed:
        return any(mark in text[stop.end() : stop.end() + _QUOTATION] for mark in _CLOSING)
    return stop[0][-1] in _CLOSING and text[stop.end() : stop.end() + 1].isalpha()


def sentences_of(text: str) -> list[str]:
    """Return the sentences of one paragraph.

    >>> sentences_of("Dr. Smith went. He left!")
    ['Dr. Smith went.', 'He left!']
    """
    return [text[begin:end].strip() for begin, end in sentence_spans(text)]


def is_wrapped(lines: Sequence[str], known_prose: bool = False) -> bool:
    """Return whether lines (blank ones are "") are wrapped sentences: rule 1, or its first part for known prose."""
    pairs = [(a, b) for a, b in pairwise(lines) if a and b]
    going_on = [(a, b) for a, b in pairs if b[0].islower() and not _ENDS.search(a)]
    if not going_on or len(going_on) < 0.3 * len(pairs):
        return False
    if known_prose:
        return True
    filled = [line for line in lines if line]
    width = sorted(map(len, filled))[int(0.9 * len(filled))]  # the longest tenth may be headings or tables
    full = sum(len(a) + 1 + len(b.split(" ", 1)[0]) > 0.8 * width for a, b in going_on)
    capitals = sum(line[0].isupper() for line in filled)
    stops = sum(_STOP.search(line) is not None for line in filled)
    return full > 0.5 * len(going_on) and capitals >= 0.1 * len(filled) and stops >= 0.05 * len(filled)


def is_prose(lines: Sequence[str]) -> bool:
    """Return whether lines are prose, wrapped or one paragraph per line, and not one sentence per line."""
    if is_wrapped(lines):
        return True
    filled = [line for line in lines if line]
    several = sum(
        any(not line[begin].islower() and word_count(line[begin:end]) >= 3 for begin, end in sentence_spans(line)[1:])
        for line in filled
    )
    return several >= max(1, 0.15 * len(filled))


def paragraphs_of(text: str) -> list[str]:
    r"""Return the paragraphs of a text of any layout: wrapped lines are joined, white space is normalized.

    >>> paragraphs_of("One line\nwas wrapped.\n\nTwo.")
    ['One line was wrapped.', 'Two.']
    >>> paragraphs_of("A heading\nOne paragraph.")
    ['A heading', 'One paragraph.']
    """
    lines = [" ".join(line.split()) for line in text.splitlines()]
    if not is_wrapped(lines, known_prose=True):
        return [line for line in lines if line]
    blocks = "\n".join(lines).split("\n\n")
    return [text for block in blocks if (text := joined([line for line in block.split("\n") if line]))]


def sentences_in_lines(lines: Iterable[Placed]) -> Iterator[list[Placed]]:
    """Yield the sentences of each paragraph in lines, which are joined; an empty line ends a paragraph.

    The sentences of a paragraph past `PARAGRAPH_LIMIT` are given in several lists.
    """
    buffer: list[Placed] = []
    length = 0
    for number, text in chain(lines, [(0, "")]):
        if text:
            buffer.append((number, text))
            length += len(text) + 1
        if buffer and (not text or length > PARAGRAPH_LIMIT):
            sentences, buffer = _joined(buffer), []
            # The last one may go on. One 'sentence' as long as the limit is given whole: it is dropped as too long.
            if text and len(sentences) > 1:
                buffer = [sentences.pop()]
            length = sum(len(part) + 1 for _, part in buffer)
            yield sentences


def _joined(lines: list[Placed]) -> list[Placed]:
    """Return the sentences of a paragraph, each with the line where it begins."""
    parts = _with_gaps([text for _, text in lines])
    starts = list(accumulate(map(len, parts), initial=0))
    text = "".join(parts)
    return [(lines[bisect_right(starts, a) - 1][0], text[a:b].strip()) for a, b in sentence_spans(text)]
