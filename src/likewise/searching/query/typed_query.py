"""The syntax of a query: words, quoted phrases, and -words that must not occur in a passage."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from likewise.corpus.sentence_splitter import JOINING
from likewise.corpus.words import word_count
from likewise.errors import LikewiseError
from likewise.evaluation.bm25 import MARKS, folded
from likewise.searching.query.exclusion import divided

MOST = 32
"""The most phrases and words that a query may demand or bar: each is a condition on all passages."""
_STOPS = (".", "?", "!", "。", "？", "！")
_PROSE, _SILENT = 7, 2
"""Words outside of quotes, and stop words among them, from which on a query is prose, and not words alone."""
_AROUND = 2
"""The most words outside of quotes for each word inside of them, in a query that is not prose."""
_CODE = re.compile(r"[^\w\s.,;:!?¿¡'’‘(\[…]")
"""The first character of a phrase that is code, such as %20: passages are searched for it without that character."""
_PART = re.compile(
    r"(?:(?<=[\s(\[])|^)(?:(?P<bar>[-\u2013\u2212\uff0d])?[\"“”„«](?P<phrase>[^\"“”„«»]++)[\"“”»](?=[\s,.;:?!)\]]|$)"
    r"|[-\u2013\u2212\uff0d](?P<word>\.?[^\W\d_]"
    rf"[\w{MARKS}'’./\\@:&+#-]*[\w{MARKS}+#])(?=[\s,.;:?!)\]]|$))"
)
"""Phrases and -words; a dash or a minus before a word means the hyphen, which some programs put it for."""
_NEAR = 20
_COMPOUND = re.compile(rf"\w[-\u2010\u2011](?:\s+{JOINING}|\s*[/&])\s+$")
"""The first half of a compound, behind which a hyphen begins the second: Ein- und -ausgang."""
_WORD = re.compile(rf"[\w{MARKS}]+")
_NAME = re.compile(rf"(?:(?<!\S)\.(?=[^\W\d_]))?[\w{MARKS}]+(?:[+#]+(?![\w{MARKS}]))?")
"""A word, with the symbols that make it another name: C++, C#, .NET."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
"""Letters of scripts without blanks between words, such as Thai, Lao, Burmese, Khmer, kana and Chinese, and of Korean,
which joins particles to a word."""


@dataclass(frozen=True)
class TypedQuery:
    """A query in its parts.

    Attributes:
        text: Query without barred words and quotes.
        demanded: Phrases that the first passages must contain.
        ranking: Phrases that raise the rank of a passage: in prose, quotes may only mark a title or a saying.
        barred: Words and phrases that no passage may contain.
    """

    text: str
    demanded: tuple[str, ...] = ()
    ranking: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()

    @classmethod
    def of(cls, query: str, language: str = "English") -> TypedQuery:
        """Parse a typed query.

        Each phrase has its own quotes. It is demanded in a query that is otherwise a few words: fewer than 7, at most
        twice as many as are quoted, at most one of them a stop word of the language, and no stop at the end. A phrase
        that begins with a symbol, such as "%20", is never demanded, since the search ignores that symbol. A single word
        that is not demanded is a word like the others. A word is barred by a hyphen before it if a blank is before
        that; a number is not barred, as -40 is one. A phrase that the query excludes in words is barred. A query that
        bars all of its words bars none.

        Raises:
            LikewiseError: If it has more than `MOST` phrases and barred words.

        >>> TypedQuery.of('"heat pump" winter -gas')
        TypedQuery(text='heat pump winter', demanded=('heat pump',), ranking=(), barred=('gas',))
        >>> TypedQuery.of('What is the noise of a "heat pump"?').ranking
        ('heat pump',)
        >>> TypedQuery.of('encoded "%20"')
        TypedQuery(text='encoded %20', demanded=(), ranking=(), barred=())
        >>> TypedQuery.of('pumps, excluding "natural gas"').barred
        ('natural gas',)
        >>> TypedQuery.of("a post-war 5\\" disk at -40 degrees").text
        'a post-war 5" disk at -40 degrees'
        """
        quoted, barred, left, outside, at = list[str](), list[str](), list[str](), list[str](), 0
        parts = [
            part
            for part in _PART.finditer(query)
            if _WORD.search(part["word"] or part["phrase"])
            and not (part["word"] and _COMPOUND.search(query[max(0, part.start() - _NEAR) : part.start()]))
        ]
        excluded = _excluded(query, parts)
        for number, part in enumerate(parts):
            phrase = part["word"] or part["phrase"]
            is_barred = part["word"] or part["bar"]
            (barred if is_barred or number in excluded else quoted).append(" ".join(phrase.split()))
            outside.append(query[at : part.start()])
            left += [outside[-1], "" if is_barred else phrase]
            at = part.end()
        outside.append(query[at:])
        text = " ".join("".join([*left, query[at:]]).split())
        is_prose = _is_prose(" ".join(outside), quoted, language)
        demanded = [] if is_prose else [one for one in quoted if not _CODE.match(one)]
        if len(demanded) + len(barred) > MOST:
            raise LikewiseError(f"the query has {len(demanded) + len(barred)} phrases and -words: give {MOST} or fewer")
        if not _WORD.search(text) and barred:
            return cls(query)
        ranking = [one for one in quoted if one not in demanded and _is_more_than_a_word(one)][:MOST]
        unique = [tuple(dict.fromkeys(phrases)) for phrases in (demanded, ranking, barred)]
        return cls(text if quoted or barred else query, *unique)


def _is_prose(text: str, quoted: Sequence[str], language: str) -> bool:
    """Return whether the text around phrases is a sentence, and not a few search words."""
    silent, text = stop_words(language), text.strip()
    if text.endswith(_STOPS) or sum(word in silent for word in _WORD.findall(folded(text))) >= _SILENT:
        return True
    return word_count(text) >= min(_PROSE, _AROUND * sum(map(word_count, quoted)) + 1)


def _is_more_than_a_word(phrase: str) -> bool:
    """Return whether a phrase says more than its words: adjacent ones, a name such as C++, or text without spaces."""
    names = _NAME.findall(folded(phrase))
    return len(names) > 1 or not _WORD.fullmatch(names[0]) or not has_blanks(phrase)


def _excluded(query: str, parts: Sequence[re.Match[str]]) -> set[int]:
    """Return the numbers of those parts that stand in what the query excludes in words."""
    marked, at = list[str](), 0
    for number, part in enumerate(parts):
        marked += [query[at : part.start()], f"\0{number}\0"]
        at = part.end()
    return {int(number) for number in re.findall("\0(\\d+)\0", divided("".join([*marked, query[at:]]))[1])}


def searched_words(text: str, language: str) -> str:
    """Return the searched words of a query: without function words, unless there are no others.

    >>> searched_words("How does the pump fail?", "English"), searched_words("To be or not to be", "English")
    ('pump fail?', 'to be or not to be')
    """
    query, silent = folded(text), stop_words(language)
    words = " ".join(_WORD.sub(lambda word: "" if word[0] in silent else word[0], query).split())
    return words if _WORD.search(words) else query


def standing(phrase: str) -> str:
    """Return the pattern of a phrase in a folded text: adjacent words, with any punctuation between them.

    It is a LanceDB pattern, whose character sets may exclude another set.
    """
    words = _NAME.findall(folded(phrase))
    edge = rf"\W{_UNSPACED.pattern[1:-1]}"  # a word may stand in Chinese
    before = "" if _UNSPACED.match(words[0][0]) else f"(^|[{edge}])"
    other = "--[+#]" if len(words[-1]) == 1 else ""  # C is neither C++ nor C#
    after = "" if _UNSPACED.match(words[-1][-1]) else f"([{edge}{other}]|$)"
    return before + r"\W+".join(map(re.escape, words)) + after


def has_blanks(text: str) -> bool:
    """Return whether the words of a text are in scripts that put blanks between them."""
    return not _UNSPACED.search(text)


@cache
def _lists() -> dict[str, frozenset[str]]:
    read = json.loads((files("likewise.searching.query") / "stop_words.json").read_text(encoding="utf-8"))
    return {name: frozenset(words.split()) for name, words in read.items()}


def stop_words(language: str) -> frozenset[str]:
    """Return the function words of a language, in the form that is searched."""
    return _lists()[language]


def known_language(name: str) -> str:
    """Return the name of a language in LanceDB.

    Raises:
        LikewiseError: If there is no stemmer for it; the message names the supported languages.

    >>> known_language("german")
    'German'
    """
    if (known := name.strip().title()) not in _lists():
        raise LikewiseError(f"language is {name!r}: give one of {', '.join(_lists())}")
    return known
