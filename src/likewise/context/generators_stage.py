"""The stage `generators`: their training, the perplexity that selects the checkpoint, and its loading."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.context.generators import TASKS, Generators, LogBilinear, Transformers
from likewise.context.index import ChunkStore
from likewise.context.pretrained import PretrainedGenerators
from likewise.context.stage_options import GeneratorOptions
from likewise.context.states import States
from likewise.context.training_loop import Loop, load_weights, train_stage
from likewise.context.workspace import ContextError, Stage
from likewise.corpus.clean_text import digest_of
from likewise.errors import counted
from likewise.runs.job import Job, Resume
from likewise.runs.progress import StopRequest
from likewise.runs.whole_files import Record

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
    """Train the generators of a workspace, unless they are already trained; a pretrained model is not trained.

    An interrupted run is resumed and reaches the same weights as an uninterrupted run.

    For the arguments and the errors, see `likewise.context.train_discriminator`.

    Returns:
        The stage; for trained models, its record contains the held-out perplexity by task, with the right sources, with
        shuffled sources and without sources.
    """
    options = options or GeneratorOptions()
    train = _take if options.reads == "pretrained" else _train
    return train_stage("generators", work, options, train, resume, overwrite, quiet)


def load_generators(stage: Stage, states: States) -> Generators | PretrainedGenerators:
    """Return the generators of a workspace, in evaluation mode."""
    options = GeneratorOptions(**stage.record["plan"]["options"])
    if options.reads == "pretrained":
        return PretrainedGenerators(options.model, options.given)
    weights = load_weights(stage)
    generators = _build(options, states, weights["pieces"].numpy())
    generators.load_state_dict(weights)
    return generators.eval()


def held_out_contexts(store: ChunkStore, documents: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the contexts for training, and the contexts of held-out documents, a third of all at most.

    Held-out contexts are skipped if their sentence occurs elsewhere in the corpus, or if their document already has
    `MOST_OF_A_DOCUMENT` contexts.
    """
    numbers = np.arange(store.n_contexts)
    of = store.documents[store.positions(numbers)[0]]
    distinct = np.unique(of)
    rng = np.random.default_rng([seed, 4])
    held_out = rng.permutation(distinct)[: min(documents, len(distinct) // 3)]
    out = np.isin(of, held_out)
    texts = store.texts()
    counts = Counter(texts)
    centres, _ = store.places(numbers[out])
    unique = [number for number, row in zip(numbers[out], centres, strict=True) if counts[texts[row]] == 1]
    chosen: list[int] = []
    seen = Counter[int]()
    for number in rng.permutation(np.array(unique, np.int64)):
        seen[of[number]] += 1
        if seen[of[number]] <= MOST_OF_A_DOCUMENT:
            chosen.append(number)
    return numbers[~out], np.sort(np.array(chosen, np.int64))


def perplexities(
    model: Generators, states: States, contexts: np.ndarray, kinds: tuple[str, ...] = ("right", "shuffled", "none")
) -> dict[str, dict[str, float]]:
    """Return the perplexity of a word by task, with the right sources, shuffled ones and none.

    Shuffled sources come from a random context of the batch, nearly always of another document.
    """
    sums = {kind: dict.fromkeys(TASKS, 0.0) for kind in kinds}
    counts = dict.fromkeys(TASKS, 0)
    with torch.no_grad():
        for begin in range(0, len(contexts), _AT_ONCE):
            texts = states.sides(contexts[begin : begin + _AT_ONCE])
            own = np.arange(len(texts["centre"]))
            shuffled = np.random.default_rng(begin).permutation(own)
            for task in TASKS:
                memories, targets = model.memories(task, texts), model.targets(texts[task])
                words = (targets >= 0).sum(dim=1).double()
                counts[task] += int(words.sum())
                for kind in kinds:
                    rows = dict.fromkeys(TASKS, shuffled if kind == "shuffled" else own) | {task: own}
                    given = [memory.without(kind == "none") for memory in memories]
                    sums[kind][task] -= float((model.means(task, given, targets, rows) * words).sum())
    return {kind: {task: float(np.exp(by[task] / max(1, counts[task]))) for task in TASKS} for kind, by in sums.items()}


def _build(options: GeneratorOptions, states: States, pieces: np.ndarray) -> Generators:
    size = states.encoder.pieces
    if options.reads == "states":
        return LogBilinear(pieces, size, states.vectors.shape[1], options.rank)
    most = max(states.store.left, states.store.right)
    transformers = Transformers(pieces, size, options, most, states.encoder.max_tokens)
    return transformers.to("cuda" if torch.cuda.is_available() else "cpu")


def _train(job: Job, states: States, options: GeneratorOptions, stop: StopRequest) -> Record:
    store = states.store
    training, held_out = held_out_contexts(store, options.held_out, options.seed)
    if not len(training) or len(held_out) < 2:
        raise ContextError(
            f"{store.path}: {counted(int(store.documents[-1]) + 1, 'document')} can only give "
            f"{len(training)} training and {len(held_out)} held-out examples: index more documents"
        )
    counts = np.bincount(states.ids, minlength=states.encoder.pieces)
    pieces = np.sort(np.argsort(-counts, kind="stable")[: options.vocabulary])
    pieces = pieces[counts[pieces] > 0].astype(np.int64)
    model = _build(options, states, pieces)
    per_epoch = max(1, len(training) // (options.batch_size * options.accumulation))
    steps = options.max_steps or per_epoch * options.epochs

    def loss(rows: np.ndarray) -> Tensor:
        return model.loss(states.sides(rows))

    def evaluate() -> dict[str, float]:
        by_task = perplexities(model, states, held_out, ("right",))["right"]
        return {"score": -sum(math.log(value) for value in by_task.values()), **by_task}

    def start() -> None:
        transformer: Any = states.encoder.model[0]
        table = transformer.auto_model.get_input_embeddings().weight.detach()
        model.start(counts[pieces], table[torch.from_numpy(pieces)].float().cpu().numpy())

    warmup = min(options.warmup_steps, steps // 5)
    loop = Loop(job, model, options, steps, loss, evaluate, warmup, options.schedule, options.beta2)
    facts = loop.run(_updates(training, per_epoch, options), stop, start)
    chunks, _ = store.positions(held_out)
    return facts | {
        "perplexity": perplexities(model, states, held_out),
        "held_out": {"contexts": len(held_out), "documents": len(np.unique(store.documents[chunks]))},
        "chosen_at": loop.best["step"],
        "examples": len(training),
    }


def _take(job: Job, states: States, options: GeneratorOptions, stop: StopRequest) -> Record:
    """Return the facts of a pretrained model, which is opened, so that errors are reported at once."""
    causal = PretrainedGenerators(options.model, options.given).causal
    stop.progress.tell(f"{options.model} has {causal.model.num_parameters():,} parameters, none of which is trained")
    return {"fingerprint": digest_of(f"{causal.identity} {options.given}").hex(), "perplexity": {}}


def _updates(training: np.ndarray, per_epoch: int, options: GeneratorOptions) -> Iterator[list[np.ndarray]]:
    """Yield the batches of each update, epoch after epoch."""
    epoch = 0
    while True:
        order = np.random.default_rng([options.seed, 5, epoch]).permutation(training)
        for update in np.array_split(order, per_epoch):
            yield np.array_split(update, min(options.accumulation, len(update)))
        epoch += 1
