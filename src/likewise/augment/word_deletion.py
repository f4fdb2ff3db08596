"""Deletion of words: the noise that a denoising auto-encoder has to undo."""

from __future__ import annotations

import numpy as np

from likewise.errors import LikewiseError


def delete_words(sentence: str, share: float, rng: np.random.Generator) -> str:
    """Delete each word by chance; one at least is left (TSDAE, section 3).

    Words are cut at white space, as everywhere in likewise, so that nothing has to be put together again.

    Args:
        sentence: the text.
        share: probability that a word goes, from 0 to 1.
        rng: where chance comes from.

    Raises:
        ValueError: the share is not one.

    >>> delete_words("the small cat sees a dog", 0.6, np.random.default_rng(2))
    'cat a dog'
    """
    if not 0 <= share <= 1:
        raise LikewiseError(f"the share of deleted words lies between 0 and 1, not {share}")
    words = sentence.split()
    if not words:
        return sentence
    kept = rng.random(len(words)) >= share
    if not kept.any():
        kept[rng.integers(len(words))] = True
    return " ".join(word for word, keep in zip(words, kept, strict=True) if keep)
