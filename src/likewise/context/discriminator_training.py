"""The training of the coherence discriminator: the stage `discriminator` of a workspace."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.context.chunks import ChunkStore
from likewise.context.discriminator import WEIGHTS, Discriminator, LstmReader, loss_of, save_discriminator
from likewise.context.discriminator_data import (
    ContextBatch,
    Sentences,
    batch_of_chunks,
    draw_negatives,
    epoch_batches,
    split_documents,
    training_units,
)
from likewise.context.discriminator_start import calibrate
from likewise.context.indexing import open_store
from likewise.context.options import DiscriminatorOptions
from likewise.context.selection import cache_contexts
from likewise.context.states import open_states
from likewise.context.subwords import Vocabulary
from likewise.context.training_loop import Loop
from likewise.context.workspace import ContextError, Stage, Workspace
from likewise.errors import counted
from likewise.runs.job import Job, Resume
from likewise.runs.parts import checksum
from likewise.runs.progress import Progress
from likewise.runs.stopping import orderly_stop

_UNIT = 128
"""Most sentences of a document that stay together: longer ones are cut, so that a batch holds several documents."""
_WARMUP = 20
_SAMPLE = 150
"""Documents that the start is calibrated on, about 3,000 sentences."""


def train_discriminator(
    work: str | Path,
    options: DiscriminatorOptions | None = None,
    *,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
) -> Stage:
    """Train the discriminator of a workspace, unless it is already trained.

    A stopped run that is resumed gives the weights of a run that was never stopped.

    Args:
        work: the workspace's folder, with its stage `index`.
        options: the model and its training.
        resume, overwrite, quiet: as in `likewise.context.build_index`.

    Returns:
        The stage; its record holds the held-out accuracy.

    Raises:
        ContextError: there is no index, it is stale or too small, or the training diverged.
        JobError: the stage was made with other options.
        Stopped: a stop was asked for.
    """
    options, workspace, progress = options or DiscriminatorOptions(), Workspace(work), Progress(quiet)
    needs = ["index", "states"] if options.reads == "states" else ["index"]
    with workspace.open("discriminator", options, needs, resume=resume, overwrite=overwrite) as job:
        if not job.finished:
            store = open_store(workspace.require("index"))
            vectors = open_states(workspace.require("states")).vectors if options.reads == "states" else None
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(options.seed)
                _train(job, store, vectors, options, progress)
    return workspace.require("discriminator")


def _train(
    job: Job, store: ChunkStore, vectors: np.ndarray | None, options: DiscriminatorOptions, progress: Progress
) -> None:
    n_documents = int(store.documents[-1]) + 1
    if n_documents < 4:
        raise ContextError(
            f"{store.path}: {counted(n_documents, 'document')}: four or more are needed, two of them held out"
        )
    train, choose, test = split_documents(n_documents, options.held_out, options.seed)
    units = training_units(train, store.documents, store.lengths, _UNIT)
    sentences: Any
    if vectors is None:
        vocabulary = _vocabulary(job, store, train, options.vocabulary)
        sentences = Sentences(store, vocabulary, options.max_tokens)
        reader = LstmReader(len(vocabulary), options.embedding, options.hidden)
        width = reader.width
    else:
        sentences, reader, width = vectors, None, vectors.shape[1]
    model = Discriminator(reader, width, store.left, store.right, options.head, options.rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate)
    updates = [
        [chunks]
        for epoch in range(options.epochs)
        for chunks in epoch_batches(units, store.lengths, options.batch_size, options.seed, epoch)
    ]

    def held_out(documents: np.ndarray) -> Accuracy:
        batch = batch_of_chunks(store, np.flatnonzero(np.isin(store.documents, documents)))
        with torch.no_grad():
            return accuracy_of(model.eval(), model.represent(sentences[batch.sentences]), batch, options.seed)

    def loss(chunks: np.ndarray) -> Tensor:
        batch = batch_of_chunks(store, chunks)
        return loss_of(model, model.represent(sentences[batch.sentences]), batch)

    def evaluate() -> dict[str, float]:
        found = held_out(choose)
        return {"score": found.accuracy, **asdict(found)}

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_at(step, len(updates)))
    loop = Loop(job, model, optimizer, schedule, loss, evaluate, options.eval_steps, options.max_grad_norm)
    with orderly_stop(progress) as stop:
        if not loop.resume():
            sample = batch_of_chunks(store, np.concatenate(units[:_SAMPLE]))
            calibrate(model, sentences[sample.sentences], sample, options.seed)
        loop.run(iter(updates), len(updates), "discriminator", progress, stop)
        save_discriminator(job.result, model.eval(), options.max_tokens)
        cache_contexts(job, model, store, sentences, progress, stop)
    job.finish(
        {
            "fingerprint": checksum(job.result / WEIGHTS),
            "held_out": asdict(held_out(test)),
            "chosen_by": {"accuracy": loop.best["score"], "step": loop.best["step"]},
            "steps": loop.step,
            "cpu_seconds": round(loop.cpu_seconds, 1),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
        }
    )


def _vocabulary(job: Job, store: ChunkStore, documents: np.ndarray, size: int) -> Vocabulary:
    """Return the vocabulary of the given documents, reused from a stopped run."""
    folder = job.result / "vocabulary"
    try:
        return Vocabulary.load(folder)
    except ContextError:
        chunks = np.flatnonzero(np.isin(store.documents, documents))
        texts = [sentence for chunk in chunks.tolist() for sentence in store[chunk].sentences]
        Vocabulary.train(texts, size).save(folder)
        return Vocabulary.load(folder)


def rate_at(step: int, steps: int) -> float:
    """Return the share of the peak learning rate at a step (from 0): warm-up of 20 steps, then linear decay to 0.

    >>> [round(rate_at(step, 120), 2) for step in (0, 19, 70, 119)]
    [0.05, 1.0, 0.5, 0.01]
    """
    warmup = min(_WARMUP, max(1, steps // 2))
    return min((step + 1) / warmup, (steps - step) / max(1, steps - warmup), 1.0)


@dataclass(frozen=True)
class Accuracy:
    """The accuracy on held-out contexts, each with its own sentence and with one negative.

    Attributes:
        accuracy: over all, from 0 to 1.
        positive: of the sentences in their own place.
        same_document: of the negatives from the same document; None without one.
        other_document: of those from others; None without one.
        examples: how many there are, positive and negative.
    """

    accuracy: float
    positive: float
    same_document: float | None
    other_document: float | None
    examples: int


@torch.no_grad()
def accuracy_of(model: Discriminator, representations: Tensor, batch: ContextBatch, seed: int) -> Accuracy:
    """Return the accuracy at p = 1/2 from the representations (S, W) of a batch's sentences."""
    drawn, of_document = draw_negatives(batch, seed)
    there = drawn >= 0
    if not there.any():
        raise ContextError("the held-out documents give no negative: index more documents, or hold out more of them")
    parts = model.sentence_part(representations)
    contexts = model.context_part(representations, torch.from_numpy(batch.places))[there]
    right = (model.combine_pairs(parts[batch.centres[there]], contexts) > 0).numpy()
    wrong = (model.combine_pairs(parts[drawn[there]], contexts) <= 0).numpy()
    same = of_document[there]
    return Accuracy(
        accuracy=float((right.mean() + wrong.mean()) / 2),
        positive=float(right.mean()),
        same_document=float(wrong[same].mean()) if same.any() else None,
        other_document=float(wrong[~same].mean()) if not same.all() else None,
        examples=2 * len(right),
    )
