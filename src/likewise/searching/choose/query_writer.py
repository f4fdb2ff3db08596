"""Queries that a language model writes for passages, cached per passage, and the round trip that filters them.

The model is behind a server that speaks OpenAI's protocol: Ollama, llama.cpp, vLLM, or a hosted service.

Letters of the shapes: Q queries, N passages.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from likewise.corpus.clean_text import digest_of
from likewise.errors import LikewiseError, counted, first_line, require_extra
from likewise.evaluation.bm25 import analyzer, bm25
from likewise.evaluation.fusion import standardised
from likewise.runs.cache import CachedRows
from likewise.runs.progress import Progress, orderly_stop
from likewise.searching.choose.query_prompts import FORM, LONGEST, answered, messages

FIRST = 10
"""Ranks in the hybrid baseline within which a query has to find its passage."""
_COMMON = 0.1
"""Share of the passages from which on a word is not counted as one of the passage."""


class Writer(Protocol):
    """A language model that writes queries.

    Attributes:
        notice: Line that is printed before it starts.
        batch: Number of passages per call.
    """

    notice: str
    batch: int

    @property
    def identity(self) -> str:
        """Everything that its queries depend on, except the passage and the prompt."""

    def write(self, texts: Sequence[str]) -> list[list[tuple[str, str]]]:
        """Return the kinds and texts of the queries for each passage."""


_TRIES = 5
_AT_ONCE = 4
_NEW_TOKENS = 200
_SECONDS = 300.0  # that an answer may take


class ServerError(LikewiseError):
    """Raised if a server of language models cannot be used; the message names the cure."""


class ServerWriter:
    """A language model behind a server.

    Args:
        url: Address of the server, such as http://localhost:11434/v1.
        model: Name of the model; "" if the server has only one.
    """

    batch = 4 * _AT_ONCE
    """Passages that are written for between two saves."""

    def __init__(self, url: str, model: str) -> None:
        require_extra("server", "A server that writes queries", "openai")
        self.url = url
        self.name = model or self._only_model()
        self.notice = f"the passages are sent to {url}, and nowhere else; {self.name} writes the queries"
        self.identity = f"{url} {self.name}"

    @cached_property
    def _client(self) -> Any:
        import openai

        # A redirect would lead the text elsewhere.
        web = openai.DefaultHttpxClient(follow_redirects=False)
        key = os.environ.get("OPENAI_API_KEY") or "none"
        return openai.OpenAI(base_url=self.url, api_key=key, max_retries=_TRIES - 1, timeout=_SECONDS, http_client=web)

    def _only_model(self) -> str:
        names = [model.id for model in self._tried(lambda: self._client.models.list().data)]
        if len(names) != 1:
            there = f"choose one of {', '.join(names)}" if names else "it names none"
            raise ServerError(f"{self.url}: give the name of the model by --queries-model ({there})")
        return str(names[0])

    def write(self, texts: Sequence[str]) -> list[list[tuple[str, str]]]:
        """Return the kinds and texts of the queries for each passage.

        Raises:
            ServerError: If the server refuses, or does not answer after some tries.
        """
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(self._one, texts))

    def _one(self, text: str) -> list[tuple[str, str]]:
        def ask() -> Any:
            return self._client.chat.completions.create(
                model=self.name, messages=messages(text, FORM), max_tokens=_NEW_TOKENS, temperature=0.0
            )

        choices = self._tried(ask).choices
        return answered((choices[0].message.content if choices else "") or "")

    def _tried(self, ask: Any) -> Any:
        """Return the answer to a request, which the client repeats if the server fails."""
        import openai

        try:
            return ask()
        except openai.APIStatusError as error:
            if error.status_code < 500 and error.status_code not in (408, 409, 429):
                raise ServerError(
                    f"{self.url} refuses ({error.status_code}: {first_line(error)}). Check three things: the address "
                    "(it often ends in /v1), the name in --queries-model, and the key in OPENAI_API_KEY"
                ) from None
            reason = f"{error.status_code}: {first_line(error)}"
        except openai.APIConnectionError as error:
            reason = first_line(error)
        raise ServerError(
            f"{self.url} does not answer after {_TRIES} tries ({reason}). Check that the server runs; written queries "
            f"are cached, and the same command continues from there"
        )


@dataclass(frozen=True)
class Written:
    """A query, its kind ("title", "keywords" or "question") and the number of its passage."""

    text: str
    kind: str
    passage: int


def is_server(queries: object) -> bool:
    """Return whether `queries` is the address of a server, and not a file with queries.

    >>> is_server("http://localhost:11434/v1"), is_server("queries.jsonl")
    (True, False)
    """
    return isinstance(queries, str) and queries.startswith(("http://", "https://"))


def written_for(texts: Sequence[str], writer: Writer, progress: Progress) -> list[Written]:
    """Return the queries for passages, which are written if the cache does not have them.

    Raises:
        Stopped: If the job is stopped; written queries are cached.
        LikewiseError: If the writer cannot be used.
    """
    form = [writer.identity, messages("", FORM), LONGEST]
    with closing(CachedRows("queries", form)) as rows:
        keys = [digest_of(text) for text in texts]
        known = rows.get(keys)
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        missing = sorted(new.items(), key=lambda item: -len(item[1]))
        if missing:
            progress.tell(writer.notice)
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

    A query is used if the hybrid baseline ranks its passage among the first 10, and if it is not a copy. It is a copy
    if BM25 alone finds its passage first, and the passage has all of its words except words that a tenth of the
    passages have. `vectors` gives the vectors of texts, of length 1.
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
    passed = []
    for query, by_hybrid, by_words in zip(written, *ranks, strict=True):
        rare = {word for word in stems(query.text) if holding[word] <= _COMMON * len(texts)}
        copied = by_words == 0 and rare <= of_passages[query.passage]
        if by_hybrid < FIRST and not copied:
            passed.append(query)
    return passed
