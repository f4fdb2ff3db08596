"""Encoders with an engine that is chosen once, one that runs by its export alone, and the facts that it needs.

Nothing here imports torch, which takes seconds, longer than a query or the start of a service.

Letters of the shapes: S texts, B texts of a batch, T tokens, D embedding, E a token's vector.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, TypeVar

import numpy as np

from likewise.inference.engines.engine import CPU_BUDGET, Call, TokenCall
from likewise.inference.engines.onnx_engine import OnnxEngine
from likewise.inference.engines.store import Store
from likewise.inference.tokens import Step, Tokens, by_budget
from likewise.runs.overlap import spread_over
from likewise.runs.progress import Progress

Role = Literal["query", "document"]
_PROMPTS: dict[Role, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}
Taken = TypeVar("Taken")
Item = Any
"""A text as an encoder takes it: its token ids, or the text itself where the fast path does not take the model."""


@dataclass(frozen=True)
class Facts:
    """The facts about a model that a job needs before, or instead of, loading it.

    Attributes:
        fingerprint: a hash of the weights and the computation.
        dimension: the length of its vectors.
        longest: the most tokens that it reads; None if there is no limit.
        truncate_dim: the length that its vectors are cut to; None keeps them whole.
        prompts: by name; "" is the default one.
        tokenizer: a hash of the tokenizer; None where the fast path does not take the model.
        tokens: the length of the vectors that it has for the tokens of a text; 0 if it has none.
    """

    fingerprint: str
    dimension: int
    longest: int | None
    truncate_dim: int | None
    prompts: Mapping[str, str]
    tokenizer: str | None
    tokens: int

    def prompt(self, role: Role | None = None) -> str:
        """Return the prompt that the model puts before a query, a document, or any text; "" if it has none."""
        named = (self.prompts.get(name) for name in _PROMPTS[role]) if role else iter(())
        return next(filter(None, named), None) or self.prompts.get("", "")


class TextEncoder:
    """A model with an engine that is chosen once: what makes the vectors of a file, of an index or of a service.

    Attributes:
        prompt: the text before each text.
        engine: what it runs on; "" before it is chosen.
        budget: tokens of a batch.
        pool: of the threads that run one batch each, on one core.
        workers: their number.
        gives_tokens: whether it gives the vectors of the tokens of a model that has such.
    """

    engine = ""
    gives_tokens = False
    budget = CPU_BUDGET
    pool: Executor
    workers: int
    _tokens: Any
    _call: Call
    _token_call: TokenCall
    _at_least: int

    def __init__(self, prompt: str, truncate_dim: int | None) -> None:
        self.prompt, self._truncate_dim = prompt, truncate_dim

    def choose(self, texts: Sequence[str], total: int, progress: Progress, before: str = "") -> None:
        """Choose the engine by the first of `total` texts, if there is a choice, and show it.

        Args:
            before: the engine of the run that is resumed: what was left open is chosen as it was then.
        """
        progress.tell(f"engine: {self.engine}")

    def __call__(self, texts: Sequence[str], step: Step = lambda _: None) -> np.ndarray:
        """Return the vectors (S, D), float32, of S texts, 1 or more, on all cores.

        Args:
            step: called with the number of texts done after each batch.
        """
        return self.vectors(self.items(texts), self.pool.map, step)

    def items(self, texts: Sequence[str], prompt: str | None = None) -> list[Item]:
        """Return S texts as `vectors` takes them, after a prompt (None: the usual one)."""
        before = self.prompt if prompt is None else prompt
        found: list[Item] = self._tokens([before + text for text in texts])
        return found

    def tokens(self, item: Item) -> int:
        """Return the length of an item in tokens."""
        return len(item)

    def vectors(
        self,
        items: Sequence[Item],
        spread: Callable[..., Iterable[np.ndarray]] = map,
        step: Step = lambda _: None,
    ) -> np.ndarray:
        """Return the vectors (S, D), float32 and of length 1, of S items, 1 or more; threads may call at the same time.

        Args:
            spread: maps over the batches: `map` on one core, that of an executor on several.
            step: called with the number of items done after each batch.
        """
        batches = by_budget(np.array([len(item) for item in items]), self.budget)
        found: np.ndarray | None = None
        for batch, vectors in zip(
            batches, spread(lambda batch: self._batch([items[i] for i in batch]), batches), strict=True
        ):
            found = np.empty((len(items), vectors.shape[1]), dtype=np.float32) if found is None else found
            found[batch] = vectors
            step(len(batch))
        assert found is not None
        return cut(found, self._truncate_dim)

    def with_tokens(
        self, items: Sequence[Item], take: Callable[[np.ndarray], Taken], step: Step = lambda _: None
    ) -> tuple[np.ndarray, list[Taken]]:
        """Return the vectors (S, D) of S items, 1 or more, and what is taken of their tokens, on all cores.

        Args:
            take: called with the vectors (T, E) of each text's tokens as its batch is done, as all of them together
                would fill the memory; in this thread, while the next batches are encoded.
            step: called with the number of items done after each batch.
        """
        return self.vectors_and_tokens(items, take, spread_over(self.pool, 2 * self.workers), step)

    def vectors_and_tokens(
        self,
        items: Sequence[Item],
        take: Callable[[np.ndarray], Taken],
        spread: Callable[..., Iterable[Any]] = map,
        step: Step = lambda _: None,
    ) -> tuple[np.ndarray, list[Taken]]:
        """Return the vectors (S, D) of S items, and what is taken of their tokens; see `vectors` and `with_tokens`."""
        batches = by_budget(np.array([len(item) for item in items]), self.budget)

        def run(batch: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            ids, mask = self._tokens.batch([items[i] for i in batch], self._at_least)
            return (*self._token_call(ids, mask), mask.astype(bool))

        taken: dict[int, Taken] = {}
        found: np.ndarray | None = None
        for batch, (vectors, tokens, mask) in zip(batches, spread(run, batches), strict=True):
            found = np.empty((len(items), vectors.shape[1]), dtype=np.float32) if found is None else found
            found[batch] = vectors
            taken.update((i, take(rows[there])) for i, rows, there in zip(batch.tolist(), tokens, mask, strict=True))
            step(len(batch))
        assert found is not None
        return cut(found, self._truncate_dim), [taken[i] for i in range(len(items))]

    def read_query(self, text: str, prompt: str | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the vector (D,) of a query, and the vectors (T, E) and the ids (T,) of its tokens.

        Tokens of the prompt, and others that every text begins with, are left out.
        """
        item, empty = self.items([text, ""], prompt)
        same = min(len(item), len(empty))
        start = next((i for i in range(same) if item[i] != empty[i]), same)
        vectors, (tokens,) = self.vectors_and_tokens([item], np.copy)
        return vectors[0], tokens[start:], item[start:]

    def _batch(self, ids: Sequence[np.ndarray]) -> np.ndarray:
        found: np.ndarray = self._call(*self._tokens.batch(ids, self._at_least))
        return found


class ExportedEncoder(TextEncoder):
    """The vectors of texts, of length 1, by ONNX Runtime from a checked export in the cache.

    Args:
        fingerprint: of the model.
        tokenizer: a hash of the model's tokenizer (`Tokens.hash`).
        truncate_dim: the length that vectors are cut to; None keeps them whole.
        prompt: the text before each text.

    Raises:
        LookupError: there is none with this tokenizer, its vectors are not known to be torch's, or ONNX Runtime is not
            installed.
    """

    engine = "onnx fp32"

    def __init__(self, fingerprint: str, tokenizer: str | None, truncate_dim: int | None, prompt: str = "") -> None:
        super().__init__(prompt, truncate_dim)
        store = Store(fingerprint)
        kept = store.tokenizer(tokenizer) if tokenizer and store.same("onnx") else None
        folder = store.folder(("onnx", "fp32"))
        if kept is None or folder is None:
            raise LookupError(fingerprint)
        path, known = kept
        self._at_least = known["at_least"]
        try:
            self._engine = OnnxEngine(folder, "fp32", self._at_least)
            self._call = self._engine.with_threads(1)
        except ImportError as error:
            raise LookupError(fingerprint) from error
        self.gives_tokens = self._engine.gives_tokens
        from tokenizers import Tokenizer

        own = Tokenizer.from_file(str(path))
        own.encode_special_tokens = known["special"]
        self._tokens = Tokens(own, known["pad"], known["left"])
        self.pool, self.workers = cores()

    @cached_property
    def _token_call(self) -> TokenCall:  # type: ignore[override]
        return self._engine.tokens_with_threads(1)


def cut(vectors: np.ndarray, dimensions: int | None) -> np.ndarray:
    """Return vectors (S, D) cut to a dimension, if one is given, and scaled to length 1."""
    found = vectors[:, :dimensions]
    scaled: np.ndarray = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    return scaled


@cache
def cores() -> tuple[ThreadPoolExecutor, int]:
    """Return a pool with a thread for each core of this process, or for OMP_NUM_THREADS if less; and their number."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    found = min(found, int(limit)) if limit.isdigit() and int(limit) else found
    return ThreadPoolExecutor(found, "likewise-onnx"), found
