"""The encoding of texts to vectors: token ids, batches of similar work, and an engine that runs them.

Nothing here imports torch, which takes seconds, longer than a query or the start of a service.

Letters of the shapes: S texts, B texts of a batch, T tokens, D embedding, E a token's vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from likewise.errors import LikewiseError, weights_for_all
from likewise.inference.cores import cores, one_core_threads
from likewise.inference.engines.engine import DEVICE_BUDGET, TOKENS, Engine, Vectors
from likewise.inference.tokens import PLAIN, Step, TextSide, Tokens, WholeTexts, by_budget
from likewise.runs.prefetch import in_order

if TYPE_CHECKING:
    pass

Taken = TypeVar("Taken")
Item = Any
"""A text as an encoder takes it: its token ids, or a `WholeText` for sentence-transformers' own `encode`."""
Spread = Callable[..., Iterable[Any]]
"""Maps over batches: `map` on one core, an executor's `map` on several."""


def _nothing(_: int) -> None:
    pass


class TextEncoder:
    """A tokenizer and an engine: what makes the vectors of a call, a file, an index or a service.

    Args:
        tokens: Model's tokenizer.
        engine: Engine that runs the batches.
        side: Prompt before each text, and the route.
        truncate_dim: Dimension to which vectors are truncated; None keeps them.
        normalize: Whether to scale each row to length 1.
        batch_size: Maximum number of texts in a batch; by default only the number of tokens is limited.
        for_tokens: Function that opens an engine with token vectors, if the other engine may have none.

    Attributes:
        runs: Engine of the batches.
        workers: Number of threads that run a batch each, on one core.
    """

    def __init__(
        self,
        tokens: Tokens | WholeTexts,
        engine: Engine,
        *,
        side: TextSide = PLAIN,
        truncate_dim: int | None = None,
        normalize: bool = True,
        batch_size: int | None = None,
        for_tokens: Callable[[], Engine] | None = None,
    ) -> None:
        self.runs, self.side, self.truncate_dim, self.batch_size = engine, side, truncate_dim, batch_size
        self._tokens: Any = tokens
        self.normalize, self._for_tokens, self.workers = normalize, for_tokens, cores()

    @property
    def pool(self) -> Executor:
        """The threads that run one batch each, on one core."""
        return one_core_threads(self.workers)

    @property
    def engine(self) -> str:
        """The engine in words."""
        return str(self.runs)

    @property
    def budget(self) -> int:
        """Tokens of a batch."""
        return self.runs.budget

    @property
    def gives_tokens(self) -> bool:
        """True if it gives the vectors of tokens, should the model have such."""
        return self._for_tokens is not None or self.runs.gives_tokens

    def __call__(self, texts: Sequence[str], step: Step = _nothing) -> np.ndarray:
        """Return the vectors (S, D), float32, of S texts, 1 or more, on all cores; a repeated text is encoded once.

        Args:
            step: Function that is called with the number of finished texts after each batch.

        Raises:
            LikewiseError: If they are not finite.
        """
        return all_finite(float32(finished(self.rows(texts, step), self.truncate_dim, self.normalize)))

    def rows(self, texts: Sequence[str], step: Step = _nothing) -> Vectors:
        """Return the same as the engine gives them: of its type, on its device, neither cut nor scaled."""
        unique = list(dict.fromkeys(texts))
        items = self.items(unique)
        batches = self._batches(items)
        # On an accelerator a batch is as large as it holds. On cores there are two batches for each, or the last one
        # would wait for the others; and one batch a core needs no waiting for each other inside a matrix product.
        workers = self.workers if self.budget < DEVICE_BUDGET else 1
        if self.runs.few_on_all_cores and len(batches) < 2 * workers:
            workers = 1
        spread = map if workers == 1 else one_core_threads(workers).map
        vectors, _ = self.in_batches(items, batches, workers=workers, spread=spread, step=step)
        if len(unique) == len(texts):
            return vectors
        place = {text: i for i, text in enumerate(unique)}
        step(len(texts) - len(unique))
        return vectors[np.array([place[text] for text in texts])]

    def items(self, texts: Sequence[str], side: TextSide | None = None) -> list[Item]:
        """Return S texts as items for `vectors`, on a side (None: the default side)."""
        items: list[Item] = self._tokens.items(texts, self.side if side is None else side)
        return items

    def tokens(self, item: Item) -> int:
        """Return the length of an item in tokens."""
        return int(self._tokens.length(item))

    def vectors(self, items: Sequence[Item]) -> np.ndarray:
        """Return the vectors (S, D), float32 and of length 1, of S items, 1 or more.

        A call runs on one core, and as many threads may call at the same time as there are `workers`.
        """
        vectors, _ = self.in_batches(items, self._batches(items), workers=self.workers)
        return cut(float32(vectors), self.truncate_dim)

    def with_tokens(
        self,
        items: Sequence[Item],
        take: Callable[[np.ndarray], Taken],
        step: Step = _nothing,
        *,
        spread: Spread | None = None,
    ) -> tuple[np.ndarray, list[Taken]]:
        """Return the vectors (S, D) of S items, at least one, and the results of `take` on their tokens.

        Args:
            take: Function that receives the token vectors (T, E) of each text as soon as its batch finishes, because
                all token vectors together would fill the memory; it runs in this thread while the next batches are
                encoded.
            step: Function that is called with the number of finished items after each batch.
            spread: Function that maps over the batches; None for all cores.

        Raises:
            LikewiseError: If the vectors are not finite.
        """

        def on_all_cores(run: Callable[[Any], Any], batches: Sequence[np.ndarray]) -> Iterable[Any]:
            return in_order((self.pool.submit(run, batch).result for batch in batches), 2 * self.workers)

        vectors, taken = self.in_batches(
            items, self._batches(items), workers=self.workers, spread=spread or on_all_cores, step=step, take=take
        )
        return all_finite(cut(float32(vectors), self.truncate_dim)), taken

    def in_batches(
        self,
        items: Sequence[Item],
        batches: Sequence[np.ndarray],
        *,
        workers: int = 1,
        spread: Spread = map,
        take: Callable[[np.ndarray], Taken] | None = None,
        step: Step = _nothing,
    ) -> tuple[Vectors, list[Taken]]:
        """Run batches of items, given by their indices; all vectors are computed by this loop.

        Args:
            workers: Number of threads that `spread` runs at the same time; see `Engine.open`.
            take: Function that receives the token vectors (T, E) of each text; None computes no token vectors.

        Returns:
            The vectors (S, D) of the engine, and the results of `take`.
        """
        engine = self.runs
        if take is not None and not engine.gives_tokens:
            if self._for_tokens is None:
                raise LookupError(TOKENS)
            engine = self._for_tokens()
        call = engine.open(workers, take is not None)

        def run(batch: np.ndarray) -> tuple[Vectors, np.ndarray | None, np.ndarray]:
            texts = [items[i] for i in batch]
            ids, mask = self._tokens.batch(texts, engine.filled_to(len(texts), max(map(self.tokens, texts))))
            with weights_for_all():
                vectors, tokens = call(ids, mask)
            return vectors, None if tokens is None else float32(tokens), mask

        all_vectors: Any = None
        taken: dict[int, Taken] = {}
        for batch, (vectors, tokens, mask) in zip(batches, spread(run, batches), strict=True):
            all_vectors = _empty(len(items), vectors) if all_vectors is None else all_vectors
            all_vectors[batch] = vectors
            if take is not None:
                each = zip(batch.tolist(), tokens, mask.astype(bool), strict=True)
                taken.update((i, take(rows[there])) for i, rows, there in each)
            step(len(batch))
        return all_vectors, [taken[i] for i in range(len(taken))]

    def _batches(self, items: Sequence[Item]) -> list[np.ndarray]:
        if self.runs.makes_batches:
            return [np.arange(len(items))]
        return by_budget(np.array([len(item) for item in items]), self.budget, self.batch_size)


def equal_vectors(tokens: Tokens, engine: Engine, texts: Sequence[str], batch_size: int) -> Vectors:
    """Return vectors (S, D) in the batches of sentence-transformers, by a whole torch equal to its own to the bit."""
    order = np.argsort([-len(text) for text in texts])  # as it sorts
    batches = [order[start : start + batch_size] for start in range(0, len(texts), batch_size)]
    encoder = TextEncoder(tokens, engine)
    return encoder.in_batches(encoder.items(texts), batches)[0]


def finished(vectors: Vectors, truncate_dim: int | None, normalized: bool) -> Vectors:
    """Return vectors (S, D), an array or a tensor, cut to a dimension and scaled to length 1, on request."""
    vectors = vectors if truncate_dim is None else vectors[..., :truncate_dim]
    if not normalized:
        return vectors
    if isinstance(vectors, np.ndarray):
        return cut(vectors, None)
    from torch.nn.functional import normalize  # it is there: this is a tensor

    return normalize(vectors, p=2, dim=1)


def float32(vectors: Vectors) -> np.ndarray:
    """Return an array of float32 of what an engine gives: an array, or a tensor on any device."""
    return vectors if isinstance(vectors, np.ndarray) else vectors.float().cpu().numpy()


def cut(vectors: np.ndarray, dimensions: int | None) -> np.ndarray:
    """Return vectors (S, D) cut to a dimension, if one is given, and scaled to length 1."""
    vectors = vectors[:, :dimensions]
    scaled: np.ndarray = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return scaled


def all_finite(vectors: np.ndarray) -> np.ndarray:
    """Return vectors unchanged, if all of them are finite."""
    if not np.isfinite(vectors).all():
        raise LikewiseError("The model's vectors are not finite numbers: its weights are damaged, so train it again.")
    return vectors


def cosine_note(other_similarity: str) -> str:
    """Return the line that is shown for a model whose own similarity ranks otherwise than the cosine.

    >>> cosine_note("dot")
    "the model's own similarity is 'dot', of vectors that are not of length 1: they are compared by their cosines"
    """
    own = f"the model's own similarity is '{other_similarity}', of vectors that are not of length 1"
    return f"{own}: they are compared by their cosines"


def _empty(count: int, like: Vectors) -> Vectors:
    """Return an array for (S, D) vectors with the type and the device of a batch."""
    if isinstance(like, np.ndarray):
        return np.empty((count, like.shape[1]), dtype=like.dtype)
    return like.new_empty((count, like.shape[1]))
