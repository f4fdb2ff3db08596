"""A cross-encoder, which reads a query together with a passage, as the last stage of a search."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from likewise.encoder.location import LoadError, check_cross_encoder
from likewise.errors import first_line, limit_of

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

_AT_A_TIME = 16
"""Pairs between two looks at whether the work was given up."""


class Reranker:
    """A cross-encoder of sentence-transformers, which is loaded on demand; one thread scores at a time.

    Args:
        name: Path or hub name.

    Raises:
        LoadError: If there is no such folder or name, or the folder contains no cross-encoder.
    """

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self.name = os.fspath(name)
        check_cross_encoder(self.name)
        self._lock = threading.Lock()

    @cached_property
    def model(self) -> CrossEncoder:
        """The cross-encoder; raises LoadError if it cannot be loaded or has more than one output."""
        return open_cross_encoder(self.name)

    def scores(self, query: str, texts: Sequence[str], check: Callable[[], object] = lambda: None) -> np.ndarray:
        """Return how well texts answer a query, (S,): the output before any activation, the higher the better.

        Args:
            check: Function that is called between parts of the work, which its exception ends.
        """
        from torch import nn

        from likewise.inference.cross_encoder import predict_pairs

        result = np.zeros(len(texts))
        order = np.argsort([-len(text) for text in texts], kind="stable")  # texts of near-equal length pad little
        for start in range(0, len(order), _AT_A_TIME):
            part = order[start : start + _AT_A_TIME]
            with self._lock:
                check()
                some = [texts[i] for i in part]
                result[part] = predict_pairs(self.model, [query] * len(some), some, _AT_A_TIME, None, nn.Identity())
        return result

    def tokens(self, query: str, texts: Sequence[str]) -> int:
        """Return the number of tokens that are read for S pairs."""
        pairs = self.model.tokenizer([query] * len(texts), list(texts), truncation=True)
        return sum(map(len, pairs["input_ids"]))


def in_range(scores: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Return the outputs (S,) of a cross-encoder on the scale of the scores (S,) of the same passages.

    The outputs are mapped linearly: the highest to the highest of the scores, the lowest to the lowest. So the passages
    are in the order of the cross-encoder, and their place among all others stays as it was.

    >>> in_range(np.array([3.0, 2.0, 1.0]), np.array([-4.0, 6.0, 1.0]))
    array([1., 3., 2.])
    """
    reach = outputs.max() - outputs.min()
    if reach <= 0:
        return scores
    mapped: np.ndarray = scores.min() + (scores.max() - scores.min()) * (outputs - outputs.min()) / reach
    return mapped


def open_cross_encoder(model: CrossEncoder | str) -> CrossEncoder:
    """Return a cross-encoder with one output.

    Args:
        model: A CrossEncoder, or its folder or hub name.

    Raises:
        LoadError: If there is no such model, or it has more than one output.
    """
    from sentence_transformers import CrossEncoder

    from likewise.encoder.saved_models import fit_to_weights
    from likewise.transformers_output import no_bar

    named = model if isinstance(model, str) else type(model).__name__
    if isinstance(model, str):
        check_cross_encoder(model)
    try:
        with no_bar():
            encoder = CrossEncoder(model) if isinstance(model, str) else model
    except (OSError, ValueError) as error:
        raise LoadError(
            f"'{named}' cannot be loaded as a cross-encoder: {limit_of(error) or first_line(error)}"
        ) from error
    fit_to_weights(encoder[0], named)
    if (outputs := encoder.num_labels) != 1:
        raise LoadError(f"'{named}' has {outputs} outputs per pair: give a cross-encoder with a single score")
    return encoder
