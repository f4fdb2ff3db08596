"""A loaded model with an engine that is chosen once.

Letters of the shapes: S texts, D embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from likewise.inference.encoder import DEFAULT_BATCH, finished
from likewise.inference.encoding import all_finite
from likewise.inference.engines.chooser import choose
from likewise.inference.engines.engine import Call, Choice, Engine
from likewise.inference.engines.fidelity import sample_of
from likewise.inference.exported import Item, TextEncoder
from likewise.inference.loading import load
from likewise.inference.runner import Step, UnfitModel, fits, one_core_threads, runner_of, torch_threads
from likewise.runs.on_ray import loadable
from likewise.runs.progress import Progress


class LoadedEncoder(TextEncoder):
    """A loaded model with an engine, or sentence-transformers' own `encode` if the fast path does not take the model.

    Args:
        model: the encoder.
        prompt: the text before each text.
        choice: of the engine; None for the model's own (torch, if it was not loaded by `likewise.load`).
        batch_size: most texts in a batch; None leaves it to the number of their tokens.
        normalize: scale each row to length 1.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        prompt: str,
        *,
        choice: Choice | None = None,
        batch_size: int | None = None,
        normalize: bool = True,
    ) -> None:
        super().__init__(prompt, model.truncate_dim)
        self.model, self.batch_size, self.normalize = model.eval(), batch_size, normalize
        own: Choice = getattr(model, "choice", Choice("torch"))
        self.choice = choice or own
        self.workers = torch_threads()
        self._runs: Engine | None = None
        self._tokens: Any = list  # texts stay texts
        self._chosen_by: tuple[tuple[str, ...], int] = ((), 0)

    def choose(self, texts: Sequence[str], total: int, progress: Progress, before: str = "") -> None:
        """Choose the engine by the first of `total` texts, and show it.

        Args:
            before: the engine of the run that is resumed: what was left to 'auto' is chosen as it was then.
        """
        if before.count(" ") == 1:
            self.choice = Choice(*before.split())  # type: ignore[arg-type]
        sample = sample_of(texts)
        self.engine, self._chosen_by = "sentence-transformers", (tuple(sample), total)
        if not texts:
            return
        try:
            runner = fits(self.model, texts, self.prompt)
            chosen = choose(self.model, self.choice, [self.prompt + text for text in sample], total)
        except UnfitModel as reason:
            progress.tell(f"sentence-transformers' own encode runs, the slower way: {reason}.")
            return
        self._runs, self._tokens = chosen.engine, runner.tokens
        self.engine, self.budget, self._at_least = str(chosen.engine), chosen.engine.budget, chosen.engine.at_least
        for line in (*chosen.notes, f"engine: {chosen}"):
            progress.tell(line)

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str], step: Step = lambda _: None) -> np.ndarray:
        """Return the vectors (S, D), float32, of S texts, 1 or more; `step` is called with the number of texts done.

        Raises:
            LikewiseError: they are not finite.
        """
        if not self.engine:
            self.choose(texts, len(texts), Progress(quiet=True))
        if self._runs is None:
            found = self._plain(texts, self.prompt)
            step(len(texts))
            return all_finite(found)
        prompted = [self.prompt + text for text in texts] if self.prompt else texts
        rows = runner_of(self.model).vectors(prompted, self._runs, at_most=self.batch_size, step=step)
        return all_finite(finished(rows, self._truncate_dim, self.normalize).float().cpu().numpy())

    @property
    def pool(self) -> Executor:  # type: ignore[override]
        """See `TextEncoder`."""
        return one_core_threads(self.workers)

    def tokens(self, item: Item) -> int:
        """Return the length of an item in tokens; in characters divided by 4 where they are not known."""
        return 1 + len(item) // 4 if self._runs is None else len(item)

    def vectors(self, items: Sequence[Item], spread: Callable[..., Iterable[np.ndarray]] = map) -> np.ndarray:
        """See `TextEncoder.vectors`."""
        return self._plain(items, "") if self._runs is None else super().vectors(items, spread)

    @cached_property
    def _call(self) -> Call:  # type: ignore[override]
        assert self._runs is not None
        one_core = self._runs.open(self.workers)

        @torch.inference_mode()
        def call(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
            return torch.as_tensor(one_core(ids, mask)).float().cpu().numpy()

        return call

    def _plain(self, texts: Sequence[str], prompt: str) -> np.ndarray:
        found: Any = self.model.encode(
            list(texts),
            prompt=prompt,
            batch_size=self.batch_size or DEFAULT_BATCH,
            normalize_embeddings=self.normalize,
            show_progress_bar=False,
        )
        return np.asarray(found, dtype=np.float32)

    def elsewhere(self) -> Callable[[], LoadedEncoder]:
        """Return a function that opens the model with the chosen engine in another process, which keeps it.

        Raises:
            ClusterError: it has no folder or name from which it could be loaded there.
        """
        name = loadable(getattr(self.model, "loaded_from", None))
        choice = Choice(self._runs.name, self._runs.precision) if self._runs else Choice("torch")
        return partial(_reopened, name, self.prompt, choice, self.batch_size, self.normalize, *self._chosen_by)


@lru_cache(maxsize=1)
def _reopened(
    name: str, prompt: str, choice: Choice, batch_size: int | None, normalize: bool, texts: tuple[str, ...], total: int
) -> LoadedEncoder:
    found = LoadedEncoder(load(name), prompt, choice=choice, batch_size=batch_size, normalize=normalize)
    found.choose(texts, total, Progress(quiet=True))
    return found
