"""The loop of the fast encoder: repeated texts once, batches by a budget of tokens, rows in the given order.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from likewise.inference.batches import by_budget
from likewise.inference.cores import one_core_threads, torch_threads
from likewise.inference.engines.engine import Engine
from likewise.inference.tokens import Tokens, UnfitModel, token_state

Step = Callable[[int], object]


class Runner:
    """The fast encoder of texts with a model and an engine; `runner_of` keeps one for each model."""

    def __init__(self, model: SentenceTransformer) -> None:
        """Check the model.

        Raises:
            UnfitModel: the fast path cannot take it.
        """
        self.tokens = Tokens(model)

    def vectors(
        self, texts: Sequence[str], engine: Engine, *, at_most: int | None = None, step: Step | None = None
    ) -> Tensor:
        """Encode texts.

        Args:
            texts: S of them, 1 or more.
            engine: what runs the model.
            at_most: the most sentences in a batch, if they are limited in addition to the tokens.
            step: called with the number of sentences done after each batch.

        Returns:
            (S, D), on the engine's device and of its type; row i belongs to text i.
        """
        unique = list(dict.fromkeys(texts))
        rows = self._unique(unique, engine, at_most, step)
        if len(unique) == len(texts):
            return rows
        place = {text: i for i, text in enumerate(unique)}
        if step is not None:
            step(len(texts) - len(unique))
        return rows[torch.tensor([place[text] for text in texts], device=rows.device)]

    def _unique(self, texts: list[str], engine: Engine, at_most: int | None, step: Step | None) -> Tensor:
        ids = self.tokens(texts)
        batches = by_budget(np.array([len(row) for row in ids]), engine.budget, at_most)
        threads = torch_threads() if engine.budget < 4096 else 1
        # Two batches a core, or the last one would wait for the others.
        workers = threads if len(batches) >= 2 * threads else 1
        call = engine.open(workers)
        found: Tensor | None = None

        def run(batch: np.ndarray) -> Tensor:
            return call(*self.tokens.batch([ids[i] for i in batch], engine.at_least))

        # One batch a core needs no waiting for each other inside a matrix product.
        spread = map if workers == 1 else one_core_threads(workers).map
        for batch, rows in zip(batches, spread(run, batches), strict=True):
            if found is None:
                found = rows.new_empty((len(texts), rows.shape[1]))
            found[torch.from_numpy(batch).to(rows.device)] = rows
            if step is not None:
                step(len(batch))
        assert found is not None
        return found


_RUNNERS: weakref.WeakKeyDictionary[SentenceTransformer, Runner] = weakref.WeakKeyDictionary()


def runner_of(model: SentenceTransformer) -> Runner:
    """Return the runner of a model, made at the first call and again if its tokenizer or length changes.

    Raises:
        UnfitModel: the fast path cannot take the model.
    """
    known = _RUNNERS.get(model)
    if known is None or known.tokens.state != token_state(model):
        known = _RUNNERS[model] = Runner(model)
    return known


def fits(model: SentenceTransformer, texts: Sequence[object], prompt: str | None) -> Runner:
    """Return the runner for these texts.

    Raises:
        UnfitModel: they or the model cannot; the message says why.
    """
    if not all(isinstance(text, str) for text in texts):
        raise UnfitModel("not all inputs are texts")
    if prompt and not all(getattr(module, "include_prompt", True) for module in model):
        raise UnfitModel("its pooling leaves the prompt out")
    if "encode" in vars(model) or type(model).encode is not SentenceTransformer.encode:
        raise UnfitModel("its encode is its own")
    if getattr(model[0], "can_flatten_inputs", False):
        raise UnfitModel("its batches are flattened for flash attention")
    return runner_of(model)
