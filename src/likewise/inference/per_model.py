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
        state: from a model to what the thing depends on: it is made again once that is another one.
    """

    def __init__(
        self, make: Callable[[SentenceTransformer], _Made], state: Callable[[SentenceTransformer], object]
    ) -> None:
        self._make, self._state = make, state
        self._made: weakref.WeakKeyDictionary[SentenceTransformer, tuple[object, _Made]] = weakref.WeakKeyDictionary()

    def __call__(self, model: SentenceTransformer) -> _Made:
        """Return the thing of a model, which is made now if it is new or has changed."""
        known, state = self._made.get(model), self._state(model)
        if known is None or known[0] != state:
            known = self._made[model] = state, self._make(model)
        return known[1]
