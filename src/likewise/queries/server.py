"""A language model behind a server that speaks OpenAI's protocol: Ollama, llama.cpp, vLLM, or a service."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from likewise.errors import LikewiseError, first_line, require_extra
from likewise.queries.prompts import FORM, answered, messages

_TRIES = 5
_AT_ONCE = 4
_NEW_TOKENS = 200
_SECONDS = 300.0  # that an answer may take


class ServerError(LikewiseError):
    """Raised if a server of language models cannot be used; the message names the cure."""


class ServerWriter:
    """A language model behind a server.

    Args:
        url: where it is, such as http://localhost:11434/v1.
        model: its name there; "" if the server has one alone.
    """

    batch = 4 * _AT_ONCE
    """Passages that are written for between two saves."""

    def __init__(self, url: str, model: str) -> None:
        require_extra("server", "A server that writes queries", "openai")
        self.url = url
        self.name = model or self._only_model()
        self.told = f"the passages are sent to {url}, where {self.name} writes the queries, and nowhere else"
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
            there = f"there are {', '.join(names)}" if names else "it names none"
            raise ServerError(f"{self.url}: name the model that writes by --queries-model ({there})")
        return str(names[0])

    def write(self, texts: Sequence[str]) -> list[list[tuple[str, str]]]:
        """Return the kinds and texts of the queries for each passage.

        Raises:
            ServerError: the server refuses, or does not answer after some tries.
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
            f"{self.url} does not answer after {_TRIES} tries ({reason}). Check that the server runs; what was written "
            "is kept, and the same command goes on from there"
        )
