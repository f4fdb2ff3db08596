"""The encoder of queries: the model of the index, its export, or given functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.inference.handle import ModelHandle, export_encoder
from likewise.inference.text_encoder import TextEncoder
from likewise.inference.tokens import TextSide
from likewise.runs.job import read_record
from likewise.searching.index.index_record import of_queries
from likewise.searching.index.opened_index import OpenedIndex
from likewise.searching.index.table import SearchError
from likewise.searching.parts.lookup import EncodedQuery

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_SENTENCES = 10_000
"""Sentences whose vectors are kept for the next search, which often has hits of the same passages: 15 MB."""


class QueryEncoder:
    """The encoder of the queries of an index, loaded when it is first needed.

    Args:
        path: Path to the index.
        model, vectors, tokens: as in `Index`.
    """

    def __init__(
        self,
        path: Path,
        model: SentenceTransformer | str | os.PathLike[str] | None = None,
        vectors: Callable[[Sequence[str]], np.ndarray] | None = None,
        tokens: Callable[[str], tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None,
    ) -> None:
        self.path, self.model, self.vectors, self.tokens = path, model, vectors, tokens
        self._encoder: TextEncoder | None = None
        self._fits = ""

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process encodes by: what is loaded here stays."""
        return {**self.__dict__, "_encoder": None, "_fits": ""}

    def encode(self, opened: OpenedIndex, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (S, D) of queries."""
        return self._of(opened)(texts) if self.vectors is None else self.vectors(texts)

    def encoded_query(self, opened: OpenedIndex, query: str, words: str, tokens: bool) -> EncodedQuery:
        """Return a query with its vector, and with its tokens if they are to be compared."""
        codec = opened.stored.codec
        if codec is None or not tokens or (self.tokens is None and self.vectors is not None):
            return EncodedQuery(words, self.encode(opened, [query])[0])
        read = self.tokens or partial(read_query, self._of(opened, tokens=True))
        vector, rows, ids = read(query)
        return EncodedQuery(words, vector, codec.projected(rows), codec.weights_of(ids))

    def of_sentences(self, opened: OpenedIndex, sentences: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the vectors (D,) of sentences, including previously encoded sentences."""
        known = opened.sentences
        if len(known) > _SENTENCES:
            known.clear()
        if new := [sentence for sentence in sentences if sentence not in known]:
            known.update(zip(new, self.encode(opened, new), strict=True))
        return known

    def _of(self, opened: OpenedIndex, tokens: bool = False) -> TextEncoder:
        """Return the encoder of queries, one that gives the vectors of tokens if these are needed."""
        made_with = opened.record.made_with
        if self._encoder is None or self._fits != made_with or (tokens and not self._encoder.gives_tokens):
            self._encoder, self._fits = self._loaded(opened, tokens), made_with
        return self._encoder

    def _loaded(self, opened: OpenedIndex, tokens: bool) -> TextEncoder:
        record = opened.record
        if record.query and self.model is None:
            with suppress(LookupError):
                exported = export_encoder(record.made_with, **record.query)
                if exported.gives_tokens or not tokens:
                    return exported
        encoder = encoder_of(opened.folder, self.model)
        if encoder.facts.fingerprint != record.made_with:
            raise SearchError(
                f"{self.path} was built with another model{f' ({record.model})' if record.model else ''}: search with "
                f"that model, or index again with --model and --overwrite"
            )
        now = of_queries(encoder.facts)
        if self.model is None and (changed := [name for name in record.query if record.query[name] != now[name]]):
            raise SearchError(
                f"{self.path} was built while {encoder.name} had another {' and '.join(changed)} for queries: give the "
                f"original encoder (model=...), or index again with --overwrite"
            )
        return encoder.opened("query", tokens=tokens)


def encoder_of(index: Path, model: SentenceTransformer | str | os.PathLike[str] | None, **engine: Any) -> ModelHandle:
    """Return the given encoder, or the encoder of an index; engine and precision as in `load`.

    Raises:
        SearchError: If none was given, and the index names none.
    """
    made_with = model or read_record(index).get("model")
    if made_with is None:
        raise SearchError(f"{index} names no model: give a model to index with, such as --model bundled:minilm")
    return ModelHandle(made_with, **engine)


def read_query(
    encoder: TextEncoder, text: str, side: TextSide | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the vector (D,) of a query, and the vectors (T, E) and the ids (T,) of its tokens.

    Tokens of the prompt, and others that every text begins with, are skipped.
    """
    item, empty = encoder.items([text, ""], side)
    same = min(len(item), len(empty))
    start = next((i for i in range(same) if item[i] != empty[i]), same)
    vectors, (tokens,) = encoder.with_tokens([item], np.copy, spread=map)
    return vectors[0], tokens[start:], item[start:]
