"""Word edits: easy data augmentation (Wei and Zou 2019) by textaugment, seeded by sentence."""

from __future__ import annotations

import random
from importlib import util
from typing import Any

from likewise.augment.spans import sentence_rng
from likewise.errors import LikewiseError

RATE = 0.1
"""Share of words that an edit touches (alpha of Wei and Zou, their choice for most sizes of corpus)."""


class EditError(LikewiseError):
    """Word edits that cannot be made here; the message names the cure."""


class WordEditor:
    """One random edit of a sentence: synonyms replaced or inserted, words swapped or deleted.

    Args:
        seed: with the sentence, fixes the edit.
        synonyms: False leaves out the two edits that need WordNet.

    Raises:
        EditError: textaugment is not installed, or WordNet is asked for and not on this machine.
    """

    def __init__(self, seed: int = 1, synonyms: bool = True) -> None:
        if util.find_spec("textaugment") is None:
            raise EditError('word edits need textaugment: pip install "likewise[edits]"')
        from textaugment.eda import EDA

        if synonyms and not _wordnet_is_here():
            raise EditError(
                "synonyms need WordNet and its stop words: python -m nltk.downloader wordnet stopwords "
                "(or set edits to no-synonyms)"
            )
        # Without its __init__, which goes to the network and seeds Python's random numbers for everyone.
        self._eda: Any = EDA.__new__(EDA)
        self._eda.stopwords = _stop_words() if synonyms else []
        self.seed = seed
        self.kinds = ("synonyms", "insert", "swap", "delete") if synonyms else ("swap", "delete")

    def __call__(self, sentence: str) -> str:
        """An edited sentence, the same one for the same seed; never an empty one."""
        rng = sentence_rng(sentence, self.seed)
        kind = self.kinds[int(rng.integers(len(self.kinds)))]
        n_words = max(1, round(RATE * len(sentence.split())))
        before = random.getstate()
        random.seed(int(rng.integers(2**32)))
        try:
            if kind == "synonyms":
                edited = self._eda.synonym_replacement(sentence, n=n_words)
            elif kind == "insert":
                edited = self._eda.random_insertion(sentence, n=n_words)
            elif kind == "swap":
                edited = self._eda.random_swap(sentence, n=n_words)
            else:
                edited = self._eda.random_deletion(sentence, p=RATE)
        finally:
            random.setstate(before)
        text = edited if isinstance(edited, str) else " ".join(edited)
        return text if text.strip() else sentence


def _wordnet_is_here() -> bool:
    from nltk.corpus import stopwords, wordnet

    try:
        return bool(wordnet.synsets("word") and stopwords.words("english"))
    except LookupError:
        return False


def _stop_words() -> list[str]:
    from nltk.corpus import stopwords

    return list(stopwords.words("english"))
