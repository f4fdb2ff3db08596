"""The vectors and the tokens of passages: looked up for known texts, encoded for new texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likewise.inference.handle import ModelHandle
from likewise.inference.text_encoder import TextEncoder
from likewise.runs.job import Job, Plan
from likewise.runs.on_ray import begun_on_ray
from likewise.runs.progress import Progress
from likewise.searching.index.index_record import finished_record
from likewise.searching.index.maxsim import TokenCodec, token_weights
from likewise.searching.index.passages import EncodedPassage, IndexedPassage
from likewise.searching.index.table import Encoded, SearchError, Table, number_of

_FITTED = 256
"""Number of passages whose tokens determine the form in which all tokens are stored."""
_UNWEIGHED = 0.01
"""Share of passages, texts and files that may change before the weights of tokens are determined again."""
_COUNTED = 10_000
"""Passages by which the weights of tokens are found, all of a smaller index."""


class Shared(NamedTuple):
    """An index whose vectors another index reuses for the same texts.

    Attributes:
        table: Passages of the index.
        codec: Format of their tokens; None if none are stored.
    """

    table: Table
    codec: TokenCodec | None

    @classmethod
    def open(cls, path: Path, plan: Plan) -> Shared:
        """Open a finished index.

        Raises:
            SearchError: If the index does not exist, or its vectors do not match the plan.
        """
        record = finished_record(path)
        deciding = [(record.options.get(name), plan.options[name]) for name in ("prompt", "truncate_dim")]
        if record.made_with != plan.inputs["model"] or any(old != new for old, new in deciding):
            raise SearchError(
                f"{path} was built with another model: its vectors cannot be used. Leave out --vectors-from"
            )
        return cls(Table(path, record.table, record.version), TokenCodec.open(path / record.geometry))

    def stores_as(self, codec: TokenCodec | None) -> bool:
        """Return whether tokens are stored, in the same form."""
        if codec is None or self.codec is None:
            return False
        parts = ("directions", "mean", "step")
        return all(np.array_equal(getattr(codec, one), getattr(self.codec, one)) for one in parts)


class PassageEncoder:
    """The encoding of the passages of one update.

    Args:
        table: Table to write to.
        encoder: Encoder of the passages.
        job: Job that stores the state for a resumed run.
        progress: Progress that reports the engine.
        workers: Number of workers of a cluster; 0 for this process.
        codec: Format of the tokens; None if there are none, or it is determined by the first passages.
        shared: Another index whose vectors are copied for the same texts.

    Attributes:
        bar: Progress of the encoded passages.
        encoded: Number of encoded passages.
    """

    def __init__(
        self,
        table: Table,
        encoder: ModelHandle,
        job: Job,
        progress: Progress,
        *,
        workers: int = 0,
        codec: TokenCodec | None = None,
        shared: Shared | None = None,
    ) -> None:
        self.codec, self.workers, self.encoded = codec, workers, 0
        self.bar: Any = None
        self._table, self._encoder, self._job, self._progress = table, encoder, job, progress
        self._vectors: Any = None  # a TextEncoder, opened when there is something to encode
        self._elsewhere: Any = None  # opens it in a worker of a cluster
        self._seen = set(table.keys()[1].tolist())  # the beginnings of the keys in the table, and of this run
        self._shared = shared
        if shared is not None and table.has_tokens:
            if codec is None and shared.codec is not None:
                self.codec = replace(shared.codec, weights=np.ones(1, dtype=np.float32))  # of its own text
                self.codec.save(job.work)
            if not shared.stores_as(self.codec):
                self._shared = None

    @property
    def engine(self) -> str | None:
        """The engine that has encoded; None if there was nothing to encode."""
        return None if self._vectors is None else str(self._vectors.engine)

    def weighed(self, unweighed: int) -> tuple[TokenCodec | None, int]:
        """Return the form of the tokens, with new weights after many changes, and the remaining number of changes.

        Args:
            unweighed: Number of passages, texts and files that have changed since they were determined.
        """
        codec, rows = self.codec, self._table.rows
        if codec is None or not rows or not (unweighed > _UNWEIGHED * rows or len(codec.weights) == 1):
            return codec, unweighed
        reader = self._vectors or self._encoder.opened("document")
        return replace(codec, weights=token_weights(reader.items(self._table.texts(_COUNTED)))), 0

    def begin(self, window: list[IndexedPassage], total: int) -> Callable[[], int]:
        """Begin to encode the passages whose text is not in the table, and return what writes all and counts them."""
        keys = [passage.key for passage in window]
        known = self._in_table(keys)
        if self._shared is not None and (missing := [key for key in keys if key not in known]):
            known |= self._shared.table.known(missing)
        new = {one.key: one.encoded for one in window if one.key not in known}
        rows = self._encode(list(new.values()), total) if new else tuple
        self.encoded += len(new)

        def write() -> int:
            known.update(zip(new, rows(), strict=True))
            self._table.add([EncodedPassage(one, *known[one.key]) for one in window])
            return len(window)

        return write

    def _in_table(self, keys: Sequence[str]) -> dict[str, Encoded]:
        """Look up the texts, by key, whose vectors are in the table already.

        It is asked only for texts that come again: a look at the whole table for each window would take longer than a
        light encoder.
        """
        numbers = list(map(number_of, keys))
        again = [key for key, number in zip(keys, numbers, strict=True) if number in self._seen]
        self._seen.update(numbers)
        return self._table.known(again) if again else {}

    def _encode(self, texts: list[str], total: int) -> Callable[[], Iterable[Encoded]]:
        """Return a function that gives the vectors and the tokens of texts, which a cluster encodes meanwhile."""
        if self._vectors is None:
            own, notes = self._encoder, self._job.notes
            before = notes.get("engine", "") if notes.get("asked") == own.requested else ""
            total, settings = max(total, len(texts)), {"tokens": self._table.has_tokens, "by_export": not self.workers}
            self._vectors = own.opened("document", texts, total, progress=self._progress, before=before, **settings)
            if self.workers:
                self._elsewhere = own.for_worker(self._vectors, texts, total)
            self._job.note(engine=self._vectors.engine, asked=own.requested)
        if self._table.has_tokens and self.codec is None:
            return self._fitted(texts)
        if self.workers:
            return begun_on_ray(_encoded, self._elsewhere, texts, self.codec)
        rows = self._here(texts)
        return lambda: rows

    def _here(self, texts: list[str]) -> list[Encoded]:
        """Return the vectors and the tokens of texts, encoded by this process."""
        if self.codec is None:
            return [(vector, b"") for vector in self._vectors(texts, self.bar.advance)]
        items = self._vectors.items(texts)
        return list(zip(*self._vectors.with_tokens(items, self.codec.pack, self.bar.advance), strict=True))

    def _fitted(self, texts: list[str]) -> Callable[[], Iterable[Encoded]]:
        """Return the same, after the form of the tokens is found by some of the texts, which are encoded once too."""
        some = dict.fromkeys(np.linspace(0, len(texts) - 1, num=min(_FITTED, len(texts))).astype(int).tolist())
        items = self._vectors.items([texts[i] for i in some])
        vectors, tokens = self._vectors.with_tokens(items, lambda rows: rows.astype(np.float32))
        self.bar.advance(0 if self.workers else len(some))
        self.codec = TokenCodec.fit(tokens)
        self.codec.save(self._job.work)
        first = dict(zip(some, zip(vectors, map(self.codec.pack, tokens), strict=True), strict=True))
        if not (rest := [i for i in range(len(texts)) if i not in first]):
            return lambda: first.values()
        others = self._encode([texts[i] for i in rest], len(texts))
        return lambda: [row for _, row in sorted((first | dict(zip(rest, others(), strict=True))).items())]


def _encoded(opens: Callable[[], TextEncoder], texts: list[str], codec: TokenCodec | None) -> list[Encoded]:
    """Return the vectors and the tokens of texts; called by a worker of a cluster."""
    encoder = opens()
    if codec is None:
        return [(vector, b"") for vector in encoder(texts)]
    return list(zip(*encoder.with_tokens(encoder.items(texts), codec.pack), strict=True))
