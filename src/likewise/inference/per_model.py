"""Things that are made once for each loaded model, and made again once the model has changed."""

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from sentence_transformers import SentenceTransformer

_Made = TypeVar("_Made")


class PerModel(Generic[_Made]):
    """A function from a model to what is made for it; it goes with the model.

    Args:
        make: from a model to what is made, which does not hold the model.
        fits: whether what was made for a model is still right for it.
    """

    def __init__(
        self, make: Callable[[SentenceTransformer], _Made], fits: Callable[[_Made, SentenceTransformer], bool]
    ) -> None:
        self._make, self._fits = make, fits
        self._made: weakref.WeakKeyDictionary[SentenceTransformer, _Made] = weakref.WeakKeyDictionary()

    def __call__(self, model: SentenceTransformer) -> _Made:
        """Return what was made for a model, or make it."""
        known = self._made.get(model)
        if known is None or not self._fits(known, model):
            known = self._made[model] = self._make(model)
        return known
