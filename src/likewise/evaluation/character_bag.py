"""A bag of characters: cosines of TF-IDF over character n-grams, fitted on text alone.

It needs no encoder, so that an encoder of a language that its base does not know is worth something only above it.
Letters of the shapes: P pairs, N texts, Q queries.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from likewise.corpus.sentences import read_sentences
from likewise.corpus.words import has_unspaced
from likewise.evaluation.task import EvaluationError
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from likewise.runs.progress import Progress

WITHIN_WORDS: Record = {"analyzer": "char_wb", "ngram_range": (2, 4)}
"""Settings of scikit-learn for scripts with blanks between words."""
WITHOUT_BLANKS: Record = {"analyzer": "char", "ngram_range": (1, 1)}
"""Settings of scikit-learn for the other scripts."""


class CharacterBag:
    """A scorer of pairs and of rankings by the characters that texts have in common.

    >>> bag = CharacterBag.fitted(["The pump leaks.", "The pumps leaked.", "Nobody came."])
    >>> near, far = bag.score_pairs(["The pump leaks."] * 2, ["Pumps leak.", "Nobody came."])
    >>> bool(near > far)
    True
    """

    name = "characters"
    settings = {"similarity": "cosine", "precision": "fp64"}  # noqa: RUF012 - a part of the protocol

    def __init__(self, vectors_of: Callable[[Sequence[str]], csr_matrix]) -> None:
        self.vectors_of = vectors_of

    @classmethod
    def fitted(cls, texts: Sequence[str]) -> Self:
        """Count the n-grams of texts, of 2 to 4 characters within words, or single ones in scripts without blanks.

        The weight of an n-gram is its IDF times 1 plus the logarithm of its count.

        Raises:
            EvaluationError: If the texts hold no n-gram.
        """
        from sklearn.feature_extraction.text import TfidfVectorizer

        unspaced = 2 * sum(map(has_unspaced, texts)) > len(texts)
        counted = TfidfVectorizer(**(WITHOUT_BLANKS if unspaced else WITHIN_WORDS), sublinear_tf=True)
        try:
            counted.fit(texts)
        except ValueError as reason:
            raise EvaluationError(f"a bag of characters needs text: {reason}") from None
        return cls(counted.transform)

    def score_pairs(self, first: Sequence[str], second: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """Return the cosine of each of P pairs, (P,)."""
        products = self.vectors_of(first).multiply(self.vectors_of(second))
        return np.asarray(products.sum(axis=1), dtype=np.float64).ravel()

    def rows(
        self, ranked: Sequence[str], texts: Sequence[str], progress: Progress | None = None
    ) -> Callable[[slice], np.ndarray]:
        """Return a function from a slice of the queries `texts` to their cosines (B, N) with the texts `ranked`."""
        columns, queries = self.vectors_of(ranked).T.tocsc(), self.vectors_of(texts)
        return lambda part: (queries[part] @ columns).toarray()


def open_characters(corpus: str | os.PathLike[str]) -> CharacterBag:
    """Return the bag of a corpus, what `characters:FILE` means in `likewise evaluate`.

    Args:
        corpus: File or a folder of text, as in `likewise.train`.

    Raises:
        CorpusError: If it cannot be read.
    """
    return CharacterBag.fitted(list(read_sentences(os.fspath(corpus))))
