"""What a baseline is: a model made from a base, and from sentences where it is fitted to some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sentence_transformers import SentenceTransformer

from likewise.encoder.build import FIRST_LAST, LAST_TWO, build_encoder, build_layer_average
from likewise.runs.options import Options

Pooled = Literal["first-last", "last-two", "last", "cls", "own"]
"""Which vectors of a base are post-processed; 'own': those that the base gives as a model."""

Progress = Callable[[str, int, int], None]
"""Told (what is done, done, in all)."""


class BaselineError(ValueError):
    """A baseline that cannot be made of what was given; the message names the cure."""


@dataclass(frozen=True)
class Baseline:
    """One baseline.

    Args:
        name: what it is called on the command line.
        summary: one sentence.
        source: the paper.
        options: its options with their defaults.
        build: (base, options, sentences, seed, progress) to a model; `sentences` are the corpus's, in order.
        corpus: whether it is fitted to a corpus: it must be, it may be, or it is not.
        default_base: what the command line takes where no base is given.
    """

    name: str
    summary: str
    source: str
    options: Options
    build: Callable[[str, Any, Sequence[str], int, Progress], SentenceTransformer]
    corpus: Literal["required", "optional", "none"] = "none"
    default_base: str = "bundled:minilm"


def pooled_encoder(base: str, pooled: Pooled) -> SentenceTransformer:
    """The untrained encoder whose vectors a post-processing takes.

    Args:
        base: a Hugging Face name, a folder, or `bundled:minilm`; with 'own' also any model that `likewise.load` takes.
        pooled: which vectors.

    Raises:
        LoadError: the base cannot be loaded; each message names the cure.
    """
    if pooled == "own":
        from likewise.inference.loading import load

        return load(base)
    if pooled == "cls":
        return build_encoder(base, pooling="cls", head=False)
    return build_layer_average(base, {"first-last": FIRST_LAST, "last-two": LAST_TWO, "last": (-1,)}[pooled])
