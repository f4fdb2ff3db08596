"""Edits of words: easy data augmentation (Wei and Zou 2019, "EDA: Easy Data Augmentation Techniques")."""

import numpy as np

from likewise.augment.spans import sentence_rng
from likewise.corpus.words import DividedText, joined_words
from likewise.errors import LikewiseError, require_extra

RATE = 0.1
"""Share of words that an edit touches (alpha of Wei and Zou, their choice for most sizes of corpus)."""
_TRIES = 10
"""Words that are tried for a synonym to insert, as in the authors' code."""


class WordEditor:
    """A random edit of a sentence: synonyms are replaced or inserted, words are swapped or deleted.

    Args:
        synonyms: Whether the two edits that need WordNet are among them.

    Raises:
        MissingExtraError: If nltk is not installed, and the edits have synonyms.
        LikewiseError: WordNet or its stop words are not there.

    >>> WordEditor(seed=3, synonyms=False)("the old river sees a quiet bridge")
    'the old river sees bridge quiet a'
    """

    def __init__(self, seed: int = 1, synonyms: bool = True) -> None:
        self.seed = seed
        self._stop_words = _stop_words() if synonyms else frozenset()
        self.kinds = (*((_replaced, _inserted) if synonyms else ()), _swapped, _deleted)

    def __call__(self, sentence: str) -> str:
        """Return an edited sentence, the same one for the same seed and never empty."""
        rng, words = sentence_rng(sentence, self.seed), list(DividedText.of(sentence).words)
        if not words:
            return sentence
        edit = self.kinds[int(rng.integers(len(self.kinds)))]
        return joined_words(edit(words, max(1, round(RATE * len(words))), self._stop_words, rng))


def synonyms_of(word: str) -> list[str]:
    """Return the synonyms of an English word in WordNet, sorted; none is the word itself."""
    from nltk.corpus import wordnet

    names = (name for one in wordnet.synsets(word) for name in one.lemma_names())
    return sorted({name.replace("_", " ").lower() for name in names} - {word.lower()})


def _replaced(words: list[str], n: int, stop_words: frozenset[str], rng: np.random.Generator) -> list[str]:
    """Return the words with n of them, which are no stop words, replaced by synonyms."""
    chosen: dict[str, str] = {}
    for word in rng.permutation(sorted(set(words) - stop_words)).tolist():
        if len(chosen) < n and (synonyms := synonyms_of(word)):
            chosen[word] = synonyms[int(rng.integers(len(synonyms)))]
    return [chosen.get(word, word) for word in words]


def _inserted(words: list[str], n: int, stop_words: frozenset[str], rng: np.random.Generator) -> list[str]:
    """Return the words with n synonyms of random ones, which are no stop words, at random places."""
    edited, able = list(words), [word for word in words if word not in stop_words]
    for _ in range(n if able else 0):
        for _ in range(_TRIES):
            if synonyms := synonyms_of(able[int(rng.integers(len(able)))]):
                edited.insert(int(rng.integers(len(edited) + 1)), synonyms[int(rng.integers(len(synonyms)))])
                break
    return edited


def _swapped(words: list[str], n: int, _: frozenset[str], rng: np.random.Generator) -> list[str]:
    """Return the words after n swaps of two of them."""
    edited = list(words)
    for _swap in range(n if len(words) > 1 else 0):
        i, j = rng.choice(len(edited), 2, replace=False)
        edited[i], edited[j] = edited[j], edited[i]
    return edited


def _deleted(words: list[str], _n: int, _: frozenset[str], rng: np.random.Generator) -> list[str]:
    """Return the words, each of which is deleted with the probability `RATE`; one stays in any case."""
    left = [word for word, share in zip(words, rng.random(len(words)), strict=True) if share >= RATE]
    return left or [words[int(rng.integers(len(words)))]]


def _stop_words() -> frozenset[str]:
    require_extra("edits", "an edit of words by synonyms", "nltk")
    from nltk.corpus import stopwords, wordnet

    try:
        wordnet.synsets("word")
        return frozenset(stopwords.words("english"))
    except LookupError:
        raise LikewiseError(
            "synonyms need WordNet and its stop words: python -m nltk.downloader wordnet stopwords "
            "(or set edits to no-synonyms)"
        ) from None
