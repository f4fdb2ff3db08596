"""The training of the generators: the stage `generators` of a workspace."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import get_scheduler

from likewise.context.chunks import ChunkStore
from likewise.context.generators import SOURCES, TASKS, WEIGHTS, Corpus, Generators, make_generators
from likewise.context.indexing import open_store
from likewise.context.options import GeneratorOptions
from likewise.context.states import FrozenEncoder, States, open_states
from likewise.context.training_loop import Loop
from likewise.context.workspace import ContextError, Stage, Workspace
from likewise.errors import counted
from likewise.runs.job import Job, Resume
from likewise.runs.parts import checksum
from likewise.runs.progress import Progress
from likewise.runs.stopping import orderly_stop

_AT_ONCE = 256
MOST_OF_A_DOCUMENT = 20
"""Contexts of one held-out document that count: a long one would decide the perplexity alone."""


def train_generators(
    work: str | Path,
    options: GeneratorOptions | None = None,
    *,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
) -> Stage:
    """Train the generators of a workspace, unless they are already trained.

    A stopped run that is resumed gives the weights of a run that was never stopped.

    Arguments and errors are those of `likewise.context.train_discriminator`.

    Returns:
        The stage; its record holds the held-out perplexity by task with the right sources, with shuffled ones and none.
    """
    options, workspace = options or GeneratorOptions(), Workspace(work)
    with workspace.open("generators", options, ["index", "states"], resume=resume, overwrite=overwrite) as job:
        if not job.finished:
            store, states = open_store(workspace.require("index")), open_states(workspace.require("states"))
            states.check(options.reads)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(options.seed)
                _train(job, store, states, options, Progress(quiet))
    return workspace.require("generators")


def _train(job: Job, store: ChunkStore, states: States, options: GeneratorOptions, progress: Progress) -> None:
    training, held_out = held_out_contexts(store, store.texts(), options.held_out, options.seed)
    if not len(training) or len(held_out) < 2:
        raise ContextError(
            f"{store.path}: {counted(len(training), 'training example')} left of {int(store.documents[-1]) + 1} "
            f"documents after {counted(len(held_out), 'held-out one')}: give more documents"
        )
    counts = np.bincount(states.ids, minlength=states.encoder.pieces)
    pieces = np.sort(np.argsort(-counts, kind="stable")[: options.vocabulary])
    pieces = pieces[counts[pieces] > 0].astype(np.int64)
    model, corpus = make_generators(options, store, states, pieces), Corpus(store, states)
    model.start(counts[pieces], _embeddings(states.encoder, pieces))
    per_epoch = max(1, len(training) // (options.batch_size * options.accumulation))
    steps = options.max_steps or per_epoch * options.epochs
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate, betas=(0.9, options.beta2))
    schedule = get_scheduler(options.schedule, optimizer, min(options.warmup_steps, steps // 5), steps + 1)

    def loss(rows: np.ndarray) -> Tensor:
        return model.loss(corpus.texts(rows))

    def evaluate() -> dict[str, float]:
        found = perplexities(model.eval(), corpus, held_out, options.seed, ("right",))["right"]
        return {"score": -sum(math.log(value) for value in found.values()), **found}

    loop = Loop(job, model, optimizer, schedule, loss, evaluate, options.eval_steps, options.max_grad_norm)
    with orderly_stop(progress) as stop:
        loop.resume()
        loop.run(_updates(training, per_epoch, options), steps, "generators", progress, stop)
    model.eval().save(job.result)
    chunks, _ = store.positions(held_out)
    job.finish(
        {
            "fingerprint": checksum(job.result / WEIGHTS),
            "perplexity": perplexities(model, corpus, held_out, options.seed),
            "held_out": {"contexts": len(held_out), "documents": len(np.unique(store.documents[chunks]))},
            "chosen_at": loop.best["step"],
            "steps": steps,
            "cpu_seconds": round(loop.cpu_seconds, 1),
            "examples": len(training),
            "parameters": sum(part.numel() for part in model.parameters()),
        }
    )


def held_out_contexts(store: ChunkStore, texts: list[str], documents: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the contexts for training, and those of whole documents that are held out, a third of all at most.

    Of the held-out ones, those are left out whose sentence occurs elsewhere in the corpus, and all but
    `MOST_OF_A_DOCUMENT` of a document.
    """
    numbers = np.arange(store.n_contexts)
    chunks, _ = store.positions(numbers)
    of = store.documents[chunks]
    distinct = np.unique(of)
    rng = np.random.default_rng([seed, 4])
    held = rng.permutation(distinct)[: min(documents, len(distinct) // 3)]
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


def perplexities(
    model: Generators,
    corpus: Corpus,
    contexts: np.ndarray,
    seed: int,
    kinds: tuple[str, ...] = ("right", "shuffled", "none"),
) -> dict[str, dict[str, float]]:
    """Return the perplexity of a word by task, with the right sources, shuffled ones and none.

    Shuffled sources are those of another context of those given, at a random distance round the list, so that nearly
    all are of another document.
    """
    shift = int(np.random.default_rng([seed, 3]).integers(len(contexts) // 4, 3 * len(contexts) // 4 + 1))
    sums = {kind: dict.fromkeys(TASKS, 0.0) for kind in kinds}
    counts = dict.fromkeys(TASKS, 0)
    with torch.no_grad():
        for begin in range(0, len(contexts), _AT_ONCE):
            texts = corpus.texts(contexts[begin : begin + _AT_ONCE])
            others = corpus.texts(np.roll(contexts, shift)[begin : begin + _AT_ONCE])
            rows = dict.fromkeys(TASKS, np.arange(len(texts["centre"])))
            for task in TASKS:
                targets = model.targets(texts[task])
                words = (targets >= 0).sum(dim=1).double()
                counts[task] += int(words.sum())
                for kind in kinds:
                    read = others if kind == "shuffled" else texts
                    memories = [model.encode(task, side, read[side]) for side in SOURCES[task]]
                    if kind == "none":
                        memories = [memory.without(torch.ones(len(words), dtype=torch.bool)) for memory in memories]
                    sums[kind][task] -= float((model.means(task, memories, targets, rows) * words).sum())
    return {kind: {task: float(np.exp(by[task] / max(1, counts[task]))) for task in TASKS} for kind, by in sums.items()}


def _embeddings(encoder: FrozenEncoder, pieces: np.ndarray) -> np.ndarray:
    """Return the encoder's input vectors of word pieces."""
    transformer: Any = encoder.model[0]
    table = transformer.auto_model.get_input_embeddings()
    rows: np.ndarray = table.weight.detach()[torch.from_numpy(pieces)].float().cpu().numpy()
    return rows


def _updates(training: np.ndarray, per_epoch: int, options: GeneratorOptions) -> Iterator[list[np.ndarray]]:
    """Yield the batches of each update, epoch after epoch."""
    epoch = 0
    while True:
        order = np.random.default_rng([options.seed, 5, epoch]).permutation(training)
        for update in np.array_split(order, per_epoch):
            yield np.array_split(update, min(options.accumulation, len(update)))
        epoch += 1
