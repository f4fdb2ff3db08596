"""Queries written for passages, kept in the cache passage by passage, and the round trip that filters them.

Letters of the shapes: Q queries, N passages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from likewise.corpus.lines_and_rows import digest_of
from likewise.errors import counted
from likewise.queries.prompts import FORM, HEADS, LONGEST, messages
from likewise.retrieval.bm25 import analyzer, bm25
from likewise.retrieval.fusion import standardised
from likewise.runs.cache import KeptRows
from likewise.runs.progress import Progress, orderly_stop

FIRST = 10
"""Places in the free hybrid within which a query has to find its passage."""
_FILES = (".jsonl", ".json", ".ndjson", ".gz", ".txt", ".csv", ".tsv")
_COMMON = 0.1
"""Share of the passages from which on a word is not counted as one of the passage."""


class Writer(Protocol):
    """A server or a local model that writes queries.

    Attributes:
        told: what is said before it starts.
        batch: passages that it is given at a time.
    """

    told: str
    batch: int

    @property
    def identity(self) -> str:
        """All that its queries depend on, beside the passage and the prompt."""

    def write(self, texts: Sequence[str]) -> list[list[tuple[str, str]]]:
        """Return the kinds and texts of the queries for each passage."""


@dataclass(frozen=True)
class Written:
    """A query, its kind ("title", "keywords" or "question") and the number of its passage."""

    text: str
    kind: str
    passage: int


def writes(named: object) -> bool:
    """Return whether a name is that of a server or a model, and not that of a file with queries.

    >>> writes("http://localhost:11434/v1"), writes("bundled:smollm2"), writes("Qwen/Qwen3-0.6B")
    (True, True, True)
    >>> writes("queries.jsonl")
    False
    """
    if not isinstance(named, str) or named.startswith(("http://", "https://", "bundled:")):
        return isinstance(named, str)
    return not (Path(named).expanduser().is_file() or named.endswith(_FILES))


def writer_of(named: str, model: str) -> Writer:
    """Open the writer of queries: a server if its address is named, otherwise a local model.

    Args:
        named: http://... or https://..., `bundled:smollm2`, a folder, or a name of the model hub.
        model: the name of the model on the server.

    Raises:
        LikewiseError: there is no such model, or the server cannot be used.
    """
    if named.startswith(("http://", "https://")):
        from likewise.queries.server import ServerWriter

        return ServerWriter(named, model)
    from likewise.queries.local import LocalWriter

    return LocalWriter(named)


def written_for(texts: Sequence[str], writer: Writer, progress: Progress) -> list[Written]:
    """Return the queries for passages, which are written if the cache does not have them.

    Raises:
        Stopped: a stop was asked for; what was written is kept.
        LikewiseError: the writer cannot be used.
    """
    form = [writer.identity, messages("", FORM), HEADS, LONGEST]
    with closing(KeptRows("queries", form)) as rows:
        keys = [digest_of(text) for text in texts]
        known = rows.get(keys)
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        missing = sorted(new.items(), key=lambda item: -len(item[1]))
        if missing:
            progress.tell(writer.told)
        with orderly_stop(progress) as stop, progress.bar("writing queries", len(missing)) as bar:
            for begin in range(0, len(missing), writer.batch):
                batch = missing[begin : begin + writer.batch]
                answers = writer.write([text for _, text in batch])
                written = {key: queries for (key, _), queries in zip(batch, answers, strict=True)}
                rows.put(written)
                known |= written
                bar.advance(len(batch))
                stop.check(f"after the queries for {bar.done:,} of {counted(len(missing), 'passage')}")
    return [Written(text, kind, number) for number, key in enumerate(keys) for kind, text in known.get(key, ()) if text]


def round_trip(
    written: Sequence[Written],
    texts: Sequence[str],
    vectors: Callable[[Sequence[str]], np.ndarray],
    language: str = "english",
) -> list[Written]:
    """Return the queries that find their passage again, and do not copy it.

    A query is kept if its passage is among the first 10 of all by the free hybrid, and is not a copy. It is a copy if
    BM25 alone finds its passage first, and the passage has all of its words but those that a tenth of the passages
    have.

    Args:
        written: Q queries.
        texts: N passages.
        vectors: what gives the vectors of texts, of length 1.
        language: of the text, for the stems of words.
    """
    if not written:
        return []
    queries, own = [query.text for query in written], np.array([query.passage for query in written])
    words = bm25(queries, texts, language)
    hybrid = standardised(vectors(queries) @ vectors(texts).T) + standardised(words)
    rows = np.arange(len(own))
    ranks = [(scores > scores[rows, own][:, None]).sum(axis=1) for scores in (hybrid, words)]
    stems = analyzer(language)
    of_passages = [set(stems(text)) for text in texts]
    holding = Counter(word for stems_of_passage in of_passages for word in stems_of_passage)
    kept = []
    for query, by_hybrid, by_words in zip(written, *ranks, strict=True):
        rare = {word for word in stems(query.text) if holding[word] <= _COMMON * len(texts)}
        copied = by_words == 0 and rare <= of_passages[query.passage]
        if by_hybrid < FIRST and not copied:
            kept.append(query)
    return kept
