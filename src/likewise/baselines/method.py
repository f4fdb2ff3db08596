"""The definition of a baseline: a model made from a base, and fitted to sentences if it needs any."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sentence_transformers import SentenceTransformer

from likewise.encoder.build import FIRST_LAST, LAST_TWO, build_encoder, build_layer_average
from likewise.errors import LikewiseError
from likewise.recipes.recipe import WithPresets
from likewise.runs.progress import Progress

Pooled = Literal["first-last", "last-two", "last", "cls", "own"]
"""Which vectors of a base are post-processed; 'own': those that the base gives as a model."""


class BaselineError(LikewiseError):
    """Raised if a baseline cannot be made from the given input; the message names the cure."""


@dataclass(frozen=True)
class Baseline(WithPresets):
    """The definition of one baseline.

    Args:
        build: (base, options, sentences, seed, progress) to a model; `sentences` are the corpus's, in order.
        corpus: whether it is fitted to a corpus: it must be, it may be, or it is not.
        check: called before anything is read; raises an error if a package is missing.
        default_base: the base where none is given.
    """

    build: Callable[[str, Any, Sequence[str], int, Progress], SentenceTransformer]
    corpus: Literal["required", "optional", "none"] = "none"
    check: Callable[[], None] = lambda: None
    default_base: str = "bundled:minilm"


def pooled_encoder(base: str, pooled: Pooled) -> SentenceTransformer:
    """Return the untrained encoder whose vectors are post-processed.

    Args:
        base: a Hugging Face name, a folder, or `bundled:minilm`; with 'own' also any model that `likewise.load` takes.
    """
    if pooled == "own":
        from likewise.inference.loading import load

        return load(base)
    if pooled == "cls":
        return build_encoder(base, pooling="cls", head=False)
    return build_layer_average(base, {"first-last": FIRST_LAST, "last-two": LAST_TWO, "last": (-1,)}[pooled])
