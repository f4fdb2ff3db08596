"""Things that are made once for each loaded model, and made again once the model has changed."""

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from sentence_transformers import SentenceTransformer

_Made = TypeVar("_Made")


class PerModel(Generic[_Made]):
    """A function from a model to the thing that is made for it, which goes when the model does.

    Args:
        make: from a model to the thing, which does not hold the model.
        fits: whether the thing is still right for its model.
    """

    def __init__(
        self, make: Callable[[SentenceTransformer], _Made], fits: Callable[[_Made, SentenceTransformer], bool]
    ) -> None:
        self._make, self._fits = make, fits
        self._made: weakref.WeakKeyDictionary[SentenceTransformer, _Made] = weakref.WeakKeyDictionary()

    def __call__(self, model: SentenceTransformer) -> _Made:
        """Return the thing of a model, which is made now if it is new or has changed."""
        known = self._made.get(model)
        if known is None or not self._fits(known, model):
            known = self._made[model] = self._make(model)
        return known
