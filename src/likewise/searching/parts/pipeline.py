"""The pipeline of a search: its parts and their weights, which an index stores in its record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from likewise.runs.options import OptionError, Options, option
from likewise.runs.toml_files import read_toml
from likewise.runs.whole_files import parse_json


class Pipeline(Options):
    """The parts of a hybrid search and their weights; a weight of 0 disables a part.

    The score of a passage is `vectors` times its cosine plus `words` times its BM25 score, both standardized over all
    passages of the index. For the `first` passages, `tokens` times the match of their tokens with the query's tokens is
    added, scaled to mean 0 and the standard deviation of these scores. Each score then receives a fraction
    (`neighbours`) of the mean score of the `nearest` passages. If documents have several passages, `documents` times
    the score of the whole document is added, which is computed from its mean vector and the sum of its BM25 scores.
    Next, `phrases` times the fraction of the query's quoted phrases that occur in the passage is added. If the query
    contains an exclusion, such as 'excluding' or 'do not mention', the rest of the query is searched for, and
    `excluded` times the passage's score for the excluded words is subtracted.

    With a `reranker`, a cross-encoder of sentence-transformers, the first `reranked` passages are reordered: the score
    of a passage is then the output of the cross-encoder, on the scale of the scores of these passages.

    >>> Pipeline(words=0.7).neighbours
    0.15
    """

    vectors: float = option(0.6, "Weight of the cosine of query and passage.", ge=0, le=100)
    words: float = option(0.4, "Weight of the BM25 score.", ge=0, le=100)
    tokens: float = option(
        0.5,
        "Weight of the match between the tokens of query and passage (MaxSim); an index made with 0 stores no tokens.",
        ge=0,
        le=10,
    )
    first: int = option(60, "Number of best passages whose tokens are compared.", ge=2, le=1000)
    neighbours: float = option(
        0.15, "Fraction of a passage's score that comes from the mean score of its nearest passages.", ge=0, lt=1
    )
    nearest: int = option(3, "Number of nearest passages that share their scores.", ge=1, le=100)
    documents: float = option(
        0.2,
        "Weight of the score of the whole document that contains a passage: a row, a text or a file of several "
        "passages.",
        ge=0,
        le=10,
    )
    phrases: float = option(0.5, "Weight of the quoted phrases that occur in a passage.", ge=0, le=10)
    excluded: float = option(0.2, "Weight with which the score for what the query excludes is subtracted.", ge=0, le=1)
    reranker: str = option("", "Path or hub name of a cross-encoder that reorders the first passages.")
    reranked: int = option(20, "Number of first passages that the cross-encoder reorders.", ge=1, le=1000)
    depth: int = option(
        100, "Number of best passages by vectors, and by words, that all parts of the pipeline score.", ge=10, le=10_000
    )

    def _check(self) -> None:
        if not self.vectors and not self.words:
            raise ValueError("vectors and words cannot both be 0: one of them must be searched")


WITHOUT_TOKENS = Pipeline(tokens=0, neighbours=0.1)
"""By default if the encoder has no vectors of tokens: without them, neighbors hold more of the best back."""
Given = Pipeline | Mapping[str, object] | str | os.PathLike[str]
"""A pipeline, its options by name, as JSON too, or a TOML file with them."""


def pipeline_of(requested: Given | None, before: Pipeline | None = None) -> Pipeline:
    """Return a pipeline from options; missing options are taken from another pipeline, or are the defaults.

    Raises:
        OptionError: If an option is unknown or out of its range, or the file cannot be read.
    """
    base = before or Pipeline()
    if requested is None:
        return base
    if isinstance(requested, Pipeline):
        return requested
    if isinstance(requested, str) and requested.lstrip().startswith("{"):
        try:
            requested = dict(parse_json(requested))
        except ValueError as error:
            raise OptionError(f"the pipeline {requested} is not JSON: {error}") from None
    values = dict(requested if isinstance(requested, Mapping) else read_toml(Path(requested), Pipeline.model_fields))
    if isinstance(name := values.get("reranker"), str) and name and Path(name).expanduser().is_dir():
        values["reranker"] = str(Path(name).expanduser().resolve())  # an index is searched from any folder
    return base.updated(**values)


def _only(**weights: float) -> Pipeline:
    """Return a pipeline with the given weights, in which every other part of the scores is switched off."""
    parts = [name for name, item in Pipeline.model_fields.items() if item.annotation is float]
    return Pipeline().updated(**{**dict.fromkeys(parts, 0.0), **weights})


FREE_HYBRID = _only(vectors=0.5, words=0.5)
"""Cosines and BM25 scores, each standardized, and added."""
WORDS_ALONE, VECTORS_ALONE = _only(vectors=0, words=1), _only(vectors=1, words=0)
