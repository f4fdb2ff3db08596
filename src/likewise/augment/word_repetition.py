"""Repetition of sub-words: a second view of a sentence with the same meaning and another length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likewise.errors import LikewiseError


def repeat_tokens(tokens: Sequence[int], rate: float, rng: np.random.Generator) -> list[int]:
    """Repeat some tokens, each once and right behind itself (ESimCSE, section 3.1).

    How many is drawn evenly from 0 to max(2, floor(rate x N)), both ends included, and which ones evenly from all N
    without replacement; a sentence of N < 2 tokens repeats at most N.

    Args:
        tokens: N token ids, without special tokens.
        rate: dup_rate, the largest share of tokens repeated in a long sentence, from 0 to 1.
        rng: where chance comes from.

    Raises:
        ValueError: the rate is not a share.

    >>> repeat_tokens([7, 8, 9], 0.32, np.random.default_rng(0))
    [7, 8, 8, 9, 9]
    """
    if not 0 <= rate <= 1:
        raise LikewiseError(f"the rate of repetition is a share from 0 to 1, not {rate}")
    n = len(tokens)
    most = min(n, max(2, int(rate * n)))
    repeated = set(rng.choice(n, size=rng.integers(0, most + 1), replace=False).tolist()) if n else set()
    return [token for i, token in enumerate(tokens) for _ in range(2 if i in repeated else 1)]
