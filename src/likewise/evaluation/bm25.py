"""Common words of texts: stems, and BM25.

Letters of the shapes: Q queries, N passages, V words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from likewise.corpus.words import UNSPACED, with_blanks

K1, B = 1.5, 0.75
"""Of BM25, the defaults of bm25s."""

MARKS = "".join(char for char in map(chr, range(0x300, 0xABF0)) if unicodedata.category(char)[0] == "M")
"""The combining characters that are part of a letter, such as vowels of Hindi and Thai; Python's \\w excludes them."""
_WORD = re.compile(rf"[\w{MARKS}]{{2,}}|{UNSPACED}")
_DIGIT = re.compile(r"[^\D0-9]")
_MARKED = re.compile(r"([a-z\u0370-\u03ff])[\u0300-\u036f]+")
_LETTERS = str.maketrans(
    {"ø": "o", "æ": "ae", "œ": "oe", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ı": "i", "ё": "е", "ʼ": "'"}
)
_JOINING = rf"(?:[\uac00-\ud7a3]|{UNSPACED})"
_JOINED = re.compile(rf"(?<=[a-z0-9])(?={_JOINING})|(?<={_JOINING})(?=[a-z0-9])")
"""Where a Latin word or a number touches a letter of a script that joins others to it: 'AI를', 'AI技術'."""
_HIDDEN = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_FORMS = str.maketrans("أإآٱىکیۀ", "اااايكيه") | dict.fromkeys(
    map(ord, "ـ\u0670\u093c" + "".join(map(chr, [*range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7])))
)
"""Forms of one letter in Arabic and Persian, and marks of Arabic, Hebrew and Hindi that few people type."""
_LAST_HEH = re.compile(r"ه(?!\w)")
"""It is often typed for ة, which the stems of Arabic know as the ending that it is."""
_FORMS |= dict.fromkeys([*range(0x610, 0x61B), *range(0x64B, 0x660)])


def bm25(queries: Sequence[str], passages: Sequence[str], language: str = "english") -> np.ndarray:
    """Return the BM25 scores (Q, N) of queries with passages, float32, as Lucene has them (Robertson and others 1994).

    Words are stems, of two letters or more, or of one in a script without blanks.

    >>> bm25(["pumps"], ["A pump failed.", "The door is open."]).round(2)
    array([[0.33, 0.  ]], dtype=float32)
    """
    from scipy.sparse import csr_matrix, diags
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(analyzer=analyzer(language), dtype=np.float32)
    there = csr_matrix(counter.fit_transform(passages))  # (N, V)
    length = np.asarray(there.sum(axis=1)).ravel()
    holding = np.bincount(there.indices, minlength=there.shape[1])
    idf = np.log(1 + (len(passages) - holding + 0.5) / (holding + 0.5)).astype(np.float32)
    room = K1 * (1 - B + B * length / max(length.mean(), 1e-9))
    there.data = there.data / (there.data + np.repeat(room, np.diff(there.indptr)).astype(np.float32))
    query_counts = csr_matrix(counter.transform(queries))
    return (query_counts @ (there @ diags(idf)).T).toarray().astype(np.float32)


def folded(text: str) -> str:
    """Return a text in the form that is searched: in lower case, without accents and invisible characters.

    Accents go before stems are taken, so that a word that is typed without them has the same stem. They stay where a
    mark makes another letter, as in Cyrillic, Indic scripts and kana.

    >>> folded("The R\u00e9sum\u00e9 of \u0141\u00f3d\u017a, soft\u00adened")
    'the resume of lodz, softened'
    >>> folded("AI\ub97c")
    'ai \ub97c'
    """
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", _HIDDEN.sub("", text).casefold()).translate(_FORMS)
    plain = _LAST_HEH.sub("ة", plain) if "ه" in plain else plain
    plain = _DIGIT.sub(lambda digit: str(unicodedata.digit(digit[0])), plain)
    return _JOINED.sub(" ", unicodedata.normalize("NFC", _MARKED.sub(r"\1", plain)).translate(_LETTERS))


def analyzer(language: str) -> Callable[[str], list[str]]:
    """Return a function that splits a text into words and stems them; without a language, it does not stem.

    >>> analyzer("english")("Pumps failed")
    ['pump', 'fail']
    """
    stem: Callable[[str], str] = str
    if language:
        import snowballstemmer

        stem = cache(snowballstemmer.stemmer(language).stemWord)
    return lambda text: [stem(word) for word in _WORD.findall(with_blanks(text.lower()))]
