"""Edits of words: easy data augmentation (Wei and Zou 2019)."""

import random
from typing import Any

from likewise.augment.spans import sentence_rng
from likewise.corpus.words import DividedText, joined_words
from likewise.errors import LikewiseError, require_extra

RATE = 0.1
"""Share of words that an edit touches (alpha of Wei and Zou, their choice for most sizes of corpus)."""


class WordEditor:
    """A random edit of a sentence by textaugment: synonyms replaced or inserted, words swapped or deleted.

    Args:
        synonyms: False leaves out the two edits that need WordNet.
    """

    def __init__(self, seed: int = 1, synonyms: bool = True) -> None:
        require_extra("edits", "an edit of words", "textaugment")
        before = random.getstate()
        from textaugment.eda import EDA

        random.setstate(before)  # the import draws from it

        # Without its __init__, which goes to the network and seeds Python's random numbers for everyone.
        self._eda: Any = EDA.__new__(EDA)
        self._eda.stopwords = _stop_words() if synonyms else []
        self.seed = seed
        of_synonyms = ("synonym_replacement", "random_insertion") if synonyms else ()
        self.kinds = (*of_synonyms, "random_swap", "random_deletion")

    def __call__(self, sentence: str) -> str:
        """Return an edited sentence, the same one for the same seed and never empty."""
        rng = sentence_rng(sentence, self.seed)
        kind = self.kinds[int(rng.integers(len(self.kinds)))]
        words = DividedText.of(sentence).words
        n_words = max(1, round(RATE * len(words)))
        before = random.getstate()
        random.seed(int(rng.integers(2**32)))
        try:
            how = {"p": RATE} if kind == "random_deletion" else {"n": n_words}
            edited = getattr(self._eda, kind)(" ".join(words), **how)
        finally:
            random.setstate(before)
        text = joined_words(edited.split() if isinstance(edited, str) else edited)
        return text if text.strip() else sentence


def _stop_words() -> list[str]:
    from nltk.corpus import stopwords, wordnet

    try:
        wordnet.synsets("word")
        return list(stopwords.words("english"))
    except LookupError:
        raise LikewiseError(
            "synonyms need WordNet and its stop words: python -m nltk.downloader wordnet stopwords "
            "(or set edits to no-synonyms)"
        ) from None
