"""The training of the log-bilinear generators on the states of a frozen encoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.context.bags import BagGenerators, Corpus, perplexities
from likewise.context.chunks import ChunkStore
from likewise.context.options import GeneratorOptions
from likewise.context.states import FrozenEncoder, States
from likewise.context.training_loop import Loop
from likewise.context.workspace import ContextError
from likewise.errors import counted
from likewise.runs.job import Job
from likewise.runs.progress import Progress
from likewise.runs.stopping import orderly_stop

MOST_OF_A_DOCUMENT = 20
"""Contexts of one held-out document that count: a long one would decide the perplexity alone."""


def fit_bags(
    job: Job, store: ChunkStore, states: States, options: GeneratorOptions, progress: Progress
) -> dict[str, Any]:
    """Train log-bilinear generators into the result of a job; return the facts for its record."""
    texts = [sentence for part in store.sentences() for sentence in part]
    counts = np.bincount(states.ids, minlength=states.encoder.pieces)
    pieces = np.sort(np.argsort(-counts, kind="stable")[: options.vocabulary])
    pieces = pieces[counts[pieces] > 0].astype(np.int64)
    training, held_out = held_out_contexts(store, texts, options.held_out, options.seed)
    if not len(training) or len(held_out) < 2:
        raise ContextError(
            f"{store.path}: {counted(store.n_contexts, 'context')} of {int(store.documents[-1]) + 1} documents: "
            "too few to hold some out: give more documents"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        model = BagGenerators(pieces, states.encoder.pieces, states.vectors.shape[1], options.rank)
        model.start(counts[pieces], _embeddings(states.encoder, pieces))
        corpus = Corpus(store, states, model.words)
        batches = _batches(training, options)
        steps = options.max_steps or len(batches)

        def loss(rows: np.ndarray) -> Tensor:
            return model.loss(*corpus.sides(rows))

        def evaluate() -> dict[str, float]:
            found = perplexities(model.eval(), corpus, held_out, options.seed)["right"]
            return {"score": -sum(np.log(value) for value in found.values()), **found}

        optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate, betas=(0.9, options.beta2))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer,
            lambda step: min((step + 1) / max(1, min(options.warmup_steps, steps // 5)), 1 - step / (steps + 1)),
        )
        loop = Loop(job, model, optimizer, schedule, loss, evaluate, options.eval_steps, options.max_grad_norm)
        with orderly_stop(progress) as stop:
            loop.resume()
            loop.run(_endless(batches), steps, "generators", progress, stop)
    model.eval().save(job.result)
    chunks, _ = store.positions(held_out)
    return {
        "perplexity": perplexities(model, corpus, held_out, options.seed),
        "held_out": {"contexts": len(held_out), "documents": len(np.unique(store.documents[chunks]))},
        "chosen_at": loop.best["step"],
        "steps": steps,
        "cpu_seconds": round(loop.cpu_seconds, 1),
        "examples": len(training),
        "parameters": sum(part.numel() for part in model.parameters()),
    }


def held_out_contexts(store: ChunkStore, texts: list[str], documents: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the contexts for training, and those of whole documents that are held out, a fifth of all at most.

    Of the held-out ones, those are left out whose sentence occurs elsewhere in the corpus, and all but
    `MOST_OF_A_DOCUMENT` of a document.
    """
    numbers = np.arange(store.n_contexts)
    chunks, _ = store.positions(numbers)
    of = store.documents[chunks]
    distinct = np.unique(of)
    rng = np.random.default_rng([seed, 4])
    held = rng.permutation(distinct)[: min(documents, len(distinct) // 5)]
    out = np.isin(of, held)
    often = {text for text, count in Counter(texts).items() if count > 1}
    centres, _ = store.places(numbers[out])
    kept = [number for number, row in zip(numbers[out], centres, strict=True) if texts[row] not in often]
    seen: Counter[int] = Counter()
    chosen = []
    for number in rng.permutation(np.array(kept, np.int64)):
        seen[int(of[number])] += 1
        if seen[int(of[number])] <= MOST_OF_A_DOCUMENT:
            chosen.append(number)
    return numbers[~out], np.sort(np.array(chosen, np.int64))


def _embeddings(encoder: FrozenEncoder, pieces: np.ndarray) -> np.ndarray:
    """Return the encoder's input vectors of word pieces."""
    transformer: Any = encoder.model[0]
    table = transformer.auto_model.get_input_embeddings()
    rows: np.ndarray = table.weight.detach()[torch.from_numpy(pieces)].float().cpu().numpy()
    return rows


def _batches(training: np.ndarray, options: GeneratorOptions) -> list[np.ndarray]:
    """Return the contexts of each batch of all epochs."""
    found: list[np.ndarray] = []
    for epoch in range(options.epochs):
        order = np.random.default_rng([options.seed, 5, epoch]).permutation(training)
        found += np.array_split(order, max(1, len(order) // options.batch_size))
    return found


def _endless(batches: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    while True:
        for batch in batches:
            yield [batch]
