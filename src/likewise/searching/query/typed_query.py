"""The query that somebody typed: words, phrases in quotes that must stand in a passage, and -words that must not."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise

from likewise.corpus.sentence_splitter import JOINING
from likewise.errors import LikewiseError
from likewise.evaluation.bm25 import MARKS, folded, spellings
from likewise.searching.query.exclusion import divided

MOST = 32
"""The most phrases and words that a query may demand or bar: each is a condition on all passages."""
_PROSE = 12
"""Words outside of quotes from which on a query is a question, and not words that are looked for."""
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
"""A word, with the signs that make another name of it: C++, C#, .NET."""
_UMLAUT = re.compile("(a|o|(?<![aeq])u)e")
_SHORT = 4
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
"""Letters of scripts without blanks between words, such as Thai, Lao, Burmese, Khmer, kana and Chinese, and of Korean,
which joins particles to a word."""


@dataclass(frozen=True)
class TypedQuery:
    """A query in its parts.

    Attributes:
        text: what is searched for: all but the words that are barred, without the quotes.
        demanded: phrases that must stand in a passage.
        barred: words and phrases that must not.
    """

    text: str
    demanded: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()

    @property
    def is_prose(self) -> bool:
        """True for a long question, whose quotes may only mark a word: a phrase that no passage has demands nothing."""
        quoted = sum(len(phrase.split()) for phrase in self.demanded)
        return len(self.text.split()) - quoted > _PROSE

    @classmethod
    def of(cls, query: str) -> TypedQuery:
        """Read what was typed.

        A phrase stands in quotes of its own, and a word is barred by a hyphen before it if a blank is before that; a
        number is not barred, as -40 is one. A phrase that the query excludes in words is barred. A query that bars all
        of its words bars none.

        Raises:
            LikewiseError: it has more than `MOST` such parts.

        >>> TypedQuery.of('"heat pump" winter -gas')
        TypedQuery(text='heat pump winter', demanded=('heat pump',), barred=('gas',))
        >>> TypedQuery.of('pumps, excluding "natural gas"').barred
        ('natural gas',)
        >>> TypedQuery.of("a post-war 5\\" disk at -40 degrees").text
        'a post-war 5" disk at -40 degrees'
        """
        demanded, barred, kept, at = list[str](), list[str](), list[str](), 0
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
            (barred if is_barred or number in excluded else demanded).append(" ".join(phrase.split()))
            kept += [query[at : part.start()], "" if is_barred else phrase]
            at = part.end()
        text = " ".join("".join([*kept, query[at:]]).split())
        if len(demanded) + len(barred) > MOST:
            raise LikewiseError(f"the query has {len(demanded) + len(barred)} phrases and -words: give {MOST} or fewer")
        if not _WORD.search(text) and barred:
            return cls(query)
        return cls(text if demanded or barred else query, tuple(dict.fromkeys(demanded)), tuple(dict.fromkeys(barred)))


def _excluded(query: str, parts: Sequence[re.Match[str]]) -> set[int]:
    """Return the numbers of those parts that stand in what the query excludes in words."""
    marked, at = list[str](), 0
    for number, part in enumerate(parts):
        marked += [query[at : part.start()], f"\0{number}\0"]
        at = part.end()
    return {int(number) for number in re.findall("\0(\\d+)\0", divided("".join([*marked, query[at:]]))[1])}


def searched_words(text: str, language: str) -> str:
    """Return a query as its words are searched for: without those that say nothing, unless there are no others.

    >>> searched_words("How does the pump fail?", "English"), searched_words("To be or not to be", "English")
    ('pump fail?', 'to be or not to be')
    """
    query, silent = folded(text), stop_words(language)
    told = " ".join(_WORD.sub(lambda word: "" if word[0] in silent else word[0], query).split())
    return told if _WORD.search(told) else query


def other_words(query: str, language: str) -> str:
    """Return other spellings of the words of a query; short words, and a word and a number, are also joined.

    Longer words are not: 'high speed' would mean passages with 'high-speed' more than others.

    >>> other_words("How to sign off an e-mail by RFC 5322", "English")
    'email signoff rfc5322'
    """
    silent, words = stop_words(language), [word.rstrip(".,;:?!") for word in folded(query).split()]
    others = [word for word in spellings(query) if word not in silent]
    for first, second in pairwise(words):
        is_named = first.isalpha() and second.isdecimal()
        is_short = (first + second).isalpha() and len(first) <= _SHORT >= len(second)
        if first not in silent and (is_named or is_short):
            others.append(first + second)
    if language == "German":  # on other keyboards, oe is typed for ö, which is an o in words that are looked for
        others += [plain for word in words if (plain := _UMLAUT.sub(r"\1", word)) != word]
    return " ".join(dict.fromkeys(others))


def standing(phrase: str) -> str:
    """Return the pattern of a phrase in a folded text: its words beside each other, with any signs between them.

    It is one of LanceDB, whose sets of signs may be less another one.
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
    """Return the words of a language that say nothing by themselves, as they are looked for."""
    return _lists()[language]


def known_language(name: str) -> str:
    """Return a language by the name that LanceDB has for it.

    Raises:
        LikewiseError: there are no stems for it; the message names those that there are.

    >>> known_language("german")
    'German'
    """
    if (known := name.strip().title()) not in _lists():
        raise LikewiseError(f"language is {name!r}: give one of {', '.join(_lists())}")
    return known
