"""Names of topics by the words that set them apart: class-based tf-idf.

Letters of the shapes: T topics, V words, S texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

WORDS = 10
"""Words kept of each topic."""
IN_NAME = 3
"""Words of a name."""
_TOKEN = r"(?u)\b[^\W\d_][\w'’-]*\w\b"
_TRIED = 60


def class_tfidf(counts: Any) -> Any:
    """Return the weight of each word in each topic: its share of the topic's words times log(1 + A / f).

    f is its count in all topics, and A the mean number of words of a topic (Grootendorst 2022, equation 2).

    Args:
        counts: (T, V) sparse.

    >>> from scipy.sparse import csr_matrix
    >>> class_tfidf(csr_matrix([[2.0, 2.0], [0.0, 4.0]])).toarray().round(3)
    array([[0.549, 0.255],
           [0.   , 0.511]])
    """
    from scipy.sparse import diags

    size, of_word = np.asarray(counts.sum(axis=1)).ravel(), np.asarray(counts.sum(axis=0)).ravel()
    rare = np.log1p(size.mean() / np.maximum(of_word, 1e-12))
    return (diags(1 / np.maximum(size, 1e-12)) @ counts @ diags(rare)).tocsr()


def topic_words(texts: Sequence[str], topics: np.ndarray, count: int, language: str = "english") -> list[list[str]]:
    """Return up to 10 words, or pairs of words, of each topic that set it apart, the best first.

    Args:
        texts: S texts.
        topics: (S,) the topic of each.
        count: T, the number of topics.
        language: 'english' leaves out its stop words; another one keeps all words, and the weights hold the common ones
            down.
    """
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import CountVectorizer

    stops = "english" if language.lower() == "english" else None
    counter = CountVectorizer(stop_words=stops, ngram_range=(1, 2), token_pattern=_TOKEN)
    try:
        found = counter.fit_transform(texts)  # (S, V)
    except ValueError:  # there are stop words and signs alone
        counter = CountVectorizer(token_pattern=r"(?u)\S+")
        found = counter.fit_transform(texts)
    member = csr_matrix((np.ones(len(texts)), (topics, np.arange(len(texts)))), shape=(count, len(texts)))
    weights, words = class_tfidf(member @ found), counter.get_feature_names_out()
    chosen = []
    for topic in range(count):
        row = weights[topic]
        best = np.lexsort((row.indices, -row.data))[:_TRIED]
        chosen.append(_unlike([str(words[row.indices[one]]) for one in best], language))
    return chosen


def _unlike(words: Sequence[str], language: str) -> list[str]:
    """Return the first words none of which has a word, in whatever form, of one before it.

    >>> _unlike(["working", "work", "new work", "cards", "track"], "english")
    ['working', 'cards', 'track']
    """
    from snowballstemmer import stemmer

    try:
        stem = stemmer(language.lower()).stemWord
    except KeyError:
        stem = str
    found: list[str] = []
    stems: set[str] = set()
    for one in words:
        own = {stem(part) for part in one.replace("-", " ").split()}
        if not own & stems:
            found.append(one)
            stems |= own
        if len(found) == WORDS:
            break
    return found


def named(words: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each topic of its first words, with more of them where two names would be the same.

    >>> named([["card", "arrive", "track", "post"], ["card", "arrive", "track", "lost"], ["pin"], []])
    ['card, arrive, track, post', 'card, arrive, track, lost', 'pin', '(no words)']
    """
    names = [", ".join(some[:IN_NAME]) or "(no words)" for some in words]
    return [
        ", ".join(some[: IN_NAME + 1]) if names.count(name) > 1 and some else name
        for name, some in zip(names, words, strict=True)
    ]
