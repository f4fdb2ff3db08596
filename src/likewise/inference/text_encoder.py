"""The one way from texts to vectors: token ids, batches of about the same work, and an engine that runs them.

Nothing here imports torch, which takes seconds, longer than a query or the start of a service.

Letters of the shapes: S texts, B texts of a batch, T tokens, D embedding, E a token's vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

import numpy as np

from likewise.errors import LikewiseError
from likewise.inference.cores import cores, one_core_threads
from likewise.inference.engines.engine import CPU_BUDGET, DEVICE_BUDGET, Call, Engine
from likewise.inference.tokens import Step, Tokens, by_budget
from likewise.runs.overlap import spread_over
from likewise.runs.progress import Progress

Taken = TypeVar("Taken")
Item = Any
"""A text as an encoder takes it: its token ids, or the text itself if the fast path does not take the model."""
Spread = Callable[..., Iterable[Any]]
"""Maps over batches: `map` on one core, that of an executor on several."""


def _nothing(_: int) -> None:
    pass


class TextEncoder:
    """A tokenizer and an engine: what makes the vectors of a call, a file, an index or a service.

    Args:
        tokens: the model's tokenizer.
        runs: the engine.
        prompt: the text before each text.
        truncate_dim: the length that vectors are cut to; None keeps them whole.
        batch_size: most texts in a batch; None leaves it to the number of their tokens.

    Attributes:
        engine: what it runs on, in words; "" before it is chosen.
        workers: how many threads run a batch each, on one core.
        gives_tokens: whether it gives the vectors of the tokens of a model that has such.
    """

    gives_tokens = False
    _runs: Any
    few_on_all_cores = True
    """Whether batches that are fewer than two a core run one after the other, each on all cores."""

    def __init__(
        self,
        tokens: Tokens,
        runs: Engine,
        *,
        prompt: str = "",
        truncate_dim: int | None = None,
        batch_size: int | None = None,
    ) -> None:
        self._tokens, self._runs, self.engine = tokens, runs, str(runs)
        self.prompt, self.truncate_dim, self.batch_size = prompt, truncate_dim, batch_size
        self.workers = cores()

    @property
    def pool(self) -> Executor:
        """The threads that run one batch each, on one core."""
        return one_core_threads(self.workers)

    @property
    def budget(self) -> int:
        """Tokens of a batch."""
        return self._runs.budget if self._runs else CPU_BUDGET

    def choose(self, texts: Sequence[str], total: int, progress: Progress, before: str = "") -> None:
        """Choose the engine by the first of `total` texts, if there is a choice, and show it.

        Args:
            before: the engine of the run that is resumed: what was left open is chosen as it was then.
        """
        progress.tell(f"engine: {self.engine}")

    def __call__(self, texts: Sequence[str], step: Step = _nothing) -> np.ndarray:
        """Return the vectors (S, D), float32, of S texts, 1 or more, on all cores; a repeated text is encoded once.

        Args:
            step: called with the number of texts done after each batch.

        Raises:
            LikewiseError: they are not finite.
        """
        return all_finite(self._finished(self.rows(texts, step)))

    def rows(self, texts: Sequence[str], step: Step = _nothing) -> Any:
        """Return the same as the engine gives them: of its type, on its device, neither cut nor scaled."""
        unique = list(dict.fromkeys(texts))
        items = self.items(unique)
        batches = self._batches(items)
        # On an accelerator a batch is as large as it holds. On cores there are two batches for each, or the last one
        # would wait for the others; and one batch a core needs no waiting for each other inside a matrix product.
        workers = self.workers if self.budget < DEVICE_BUDGET else 1
        if self.few_on_all_cores and len(batches) < 2 * workers:
            workers = 1
        spread = map if workers == 1 else one_core_threads(workers).map
        found, _ = self.in_batches(items, batches, workers=workers, spread=spread, step=step)
        if len(unique) == len(texts):
            return found
        place = {text: i for i, text in enumerate(unique)}
        step(len(texts) - len(unique))
        return found[np.array([place[text] for text in texts])]

    def items(self, texts: Sequence[str], prompt: str | None = None) -> list[Item]:
        """Return S texts as `vectors` takes them, after a prompt (None: the usual one)."""
        before = self.prompt if prompt is None else prompt
        found: list[Item] = self._tokens([before + text for text in texts] if before else texts)
        return found

    def tokens(self, item: Item) -> int:
        """Return the length of an item in tokens."""
        return len(item)

    def vectors(self, items: Sequence[Item], spread: Spread = map, step: Step = _nothing) -> np.ndarray:
        """Return the vectors (S, D), float32 and of length 1, of S items, 1 or more; threads may call at the same time.

        Args:
            spread: maps over the batches: `map` on one core, that of an executor on several.
            step: called with the number of items done after each batch.
        """
        found, _ = self.in_batches(items, self._batches(items), workers=self.workers, spread=spread, step=step)
        return cut(float32(found), self.truncate_dim)

    def with_tokens(
        self, items: Sequence[Item], take: Callable[[np.ndarray], Taken], step: Step = _nothing
    ) -> tuple[np.ndarray, list[Taken]]:
        """Return the vectors (S, D) of S items, 1 or more, and what is taken of their tokens, on all cores.

        Args:
            take: called with the vectors (T, E) of each text's tokens as its batch is done, as all of them together
                would fill the memory; in this thread, while the next batches are encoded.
            step: called with the number of items done after each batch.

        Raises:
            LikewiseError: the vectors are not finite.
        """
        return self.vectors_and_tokens(items, take, spread_over(self.pool, 2 * self.workers), step)

    def vectors_and_tokens(
        self,
        items: Sequence[Item],
        take: Callable[[np.ndarray], Taken],
        spread: Spread = map,
        step: Step = _nothing,
    ) -> tuple[np.ndarray, list[Taken]]:
        """Return the vectors (S, D) of S items, and what is taken of their tokens; see `vectors` and `with_tokens`."""
        found, taken = self.in_batches(
            items, self._batches(items), workers=self.workers, spread=spread, step=step, take=take
        )
        return all_finite(cut(float32(found), self.truncate_dim)), taken

    def read_query(self, text: str, prompt: str | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the vector (D,) of a query, and the vectors (T, E) and the ids (T,) of its tokens.

        Tokens of the prompt, and others that every text begins with, are left out.
        """
        item, empty = self.items([text, ""], prompt)
        same = min(len(item), len(empty))
        start = next((i for i in range(same) if item[i] != empty[i]), same)
        vectors, (tokens,) = self.vectors_and_tokens([item], np.copy)
        return vectors[0], tokens[start:], item[start:]

    def in_batches(
        self,
        items: Sequence[Item],
        batches: Sequence[np.ndarray],
        *,
        workers: int = 1,
        spread: Spread = map,
        take: Callable[[np.ndarray], Taken] | None = None,
        step: Step = _nothing,
    ) -> tuple[Any, list[Taken]]:
        """Run batches of items, given by their numbers: the loop that all vectors come from.

        Args:
            workers: how many threads `spread` runs at the same time; see `Engine.open`.
            take: called with the vectors (T, E) of each text's tokens; None makes none.

        Returns:
            The vectors (S, D) as the engine gives them, and what was taken.
        """
        call, at_least = self._open(workers, take is not None), self._runs.at_least

        def run(batch: np.ndarray) -> tuple[Any, Any, np.ndarray]:
            ids, mask = self._tokens.batch([items[i] for i in batch], at_least)
            vectors, tokens = call(ids, mask)
            return vectors, None if tokens is None else float32(tokens), mask

        found: Any = None
        taken: dict[int, Taken] = {}
        for batch, (vectors, tokens, mask) in zip(batches, spread(run, batches), strict=True):
            found = _empty(len(items), vectors) if found is None else found
            found[batch] = vectors
            if take is not None:
                each = zip(batch.tolist(), tokens, mask.astype(bool), strict=True)
                taken.update((i, take(rows[there])) for i, rows, there in each)
            step(len(batch))
        return found, [taken[i] for i in range(len(taken))]

    def _open(self, workers: int, tokens: bool) -> Call:
        opened: Call = self._runs.open(workers, tokens)
        return opened

    def _batches(self, items: Sequence[Item]) -> list[np.ndarray]:
        return by_budget(np.array([len(item) for item in items]), self.budget, self.batch_size)

    def _finished(self, rows: Any) -> np.ndarray:
        return cut(float32(rows), self.truncate_dim)


def float32(part: Any) -> np.ndarray:
    """Return an array of float32 of what an engine gives: an array, or a tensor on any device."""
    found: np.ndarray = part if isinstance(part, np.ndarray) else part.float().cpu().numpy()
    return found


def cut(vectors: np.ndarray, dimensions: int | None) -> np.ndarray:
    """Return vectors (S, D) cut to a dimension, if one is given, and scaled to length 1."""
    found = vectors[:, :dimensions]
    scaled: np.ndarray = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    return scaled


def all_finite(vectors: np.ndarray) -> np.ndarray:
    """Return vectors unchanged, if all of them are finite."""
    if not np.isfinite(vectors).all():
        raise LikewiseError("The model's vectors are not finite numbers: its weights are broken, so train it again.")
    return vectors


def _empty(count: int, like: Any) -> Any:
    """Return room for (S, D) vectors of the type, and on the device, of those of a batch."""
    if isinstance(like, np.ndarray):
        return np.empty((count, like.shape[1]), dtype=like.dtype)
    return like.new_empty((count, like.shape[1]))
