"""The training of the coherence discriminator: the stage `discriminator` of a workspace."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import get_scheduler

from likewise.context.chunks import ChunkStore
from likewise.context.discriminator import WEIGHTS, Discriminator, LstmReader, coherence_loss, save_discriminator
from likewise.context.discriminator_data import (
    ContextBatch,
    batch_of_chunks,
    epoch_batches,
    negatives,
    split_documents,
    training_units,
)
from likewise.context.indexing import open_store
from likewise.context.options import DiscriminatorOptions
from likewise.context.selection import cache_contexts
from likewise.context.states import States, open_states
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
_HELD_OUT = 3_000
"""Sentences of a batch of held-out documents: other documents are those of the batch."""


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
    with workspace.open("discriminator", options, ["index", "states"], resume=resume, overwrite=overwrite) as job:
        if not job.finished:
            store, states = open_store(workspace.require("index")), open_states(workspace.require("states"))
            states.check(options.reads)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(options.seed)
                _train(job, store, states, options, progress)
    return workspace.require("discriminator")


class _Pieces:
    """The word pieces of the index's sentences, by number."""

    def __init__(self, states: States) -> None:
        self.states = states

    def __getitem__(self, rows: np.ndarray) -> list[np.ndarray]:
        return [self.states.pieces(row) for row in rows]


def _train(job: Job, store: ChunkStore, states: States, options: DiscriminatorOptions, progress: Progress) -> None:
    n_documents = int(store.documents[-1]) + 1
    if n_documents < 4:
        raise ContextError(
            f"{store.path}: {counted(n_documents, 'document')}: four or more are needed, two of them held out"
        )
    train, choose, test = split_documents(n_documents, options.held_out, options.seed)
    units = training_units(train, store.documents, store.lengths, _UNIT)
    reader = LstmReader(states.encoder.pieces, options.embedding, options.hidden) if options.reads == "text" else None
    width = reader.width if reader else states.vectors.shape[1]
    sentences: Any = _Pieces(states) if reader else states.vectors
    model = Discriminator(reader, width, store.left, store.right, options.rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate)
    updates = [
        [chunks]
        for epoch in range(options.epochs)
        for chunks in epoch_batches(units, store.lengths, options.batch_size, options.seed, epoch)
    ]

    def held_out(documents: np.ndarray) -> Accuracy:
        parts = training_units(documents, store.documents, store.lengths, _HELD_OUT)
        batches = [batch_of_chunks(store, b) for b in epoch_batches(parts, store.lengths, _HELD_OUT, 0, 0, all_of=True)]
        return accuracy_of(model.eval(), sentences, batches)

    def loss(chunks: np.ndarray) -> Tensor:
        batch = batch_of_chunks(store, chunks)
        logits = model.logits(model.represent(sentences[batch.sentences]), batch.places)
        same, other = (torch.from_numpy(mask) for mask in negatives(batch))
        return coherence_loss(logits, torch.from_numpy(batch.centres), same, other)

    def evaluate() -> dict[str, float]:
        found = held_out(choose)
        return {"score": found.accuracy, **asdict(found)}

    schedule = get_scheduler("linear", optimizer, min(_WARMUP, len(updates) // 2), len(updates) + 1)
    loop = Loop(job, model, optimizer, schedule, loss, evaluate, options.eval_steps, options.max_grad_norm)
    with orderly_stop(progress) as stop:
        if not loop.resume():
            sample = batch_of_chunks(store, np.concatenate(units[:_SAMPLE]))
            calibrate(model, sentences[sample.sentences], sample, options.seed)
        loop.run(iter(updates), len(updates), "discriminator", progress, stop)
        save_discriminator(job.result, model.eval())
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


@dataclass(frozen=True)
class Accuracy:
    """The accuracy at p = 1/2 on held-out contexts, each with its own sentence and all its possible negatives.

    Attributes:
        accuracy: the mean of that of the sentences in their own place and that of the negatives, from 0 to 1; of the
            latter, both kinds count equally.
        positive: of the sentences in their own place.
        same_document: of the negatives from the same document; None without one.
        other_document: of those from others; None without one.
        contexts: how many there are.
    """

    accuracy: float
    positive: float
    same_document: float | None
    other_document: float | None
    contexts: int


@torch.no_grad()
def accuracy_of(model: Discriminator, sentences: Any, batches: list[ContextBatch]) -> Accuracy:
    """Return the accuracy on batches of whole documents; `sentences[rows]` is what the model represents."""
    positive: list[np.ndarray] = []
    by_kind: tuple[list[float], list[float]] = ([], [])
    for batch in batches:
        fits = model.logits(model.represent(sentences[batch.sentences]), batch.places).numpy() > 0  # (C, S)
        positive.append(fits[np.arange(len(fits)), batch.centres])
        for found, mask in zip(by_kind, negatives(batch), strict=True):
            counts = mask.sum(axis=1)
            found += ((~fits & mask).sum(axis=1)[counts > 0] / counts[counts > 0]).tolist()
    if not any(by_kind):
        raise ContextError("the held-out documents give no negative: index more documents, or hold out more of them")
    own = float(np.concatenate(positive).mean())
    same, other = (float(np.mean(found)) if found else None for found in by_kind)
    wrong = float(np.mean([share for share in (same, other) if share is not None]))
    return Accuracy((own + wrong) / 2, own, same, other, sum(map(len, positive)))


@torch.no_grad()
def calibrate(model: Discriminator, sentences: Any, batch: ContextBatch, seed: int) -> None:
    """Set P, Q, t and the biases from a sample: one space for sentences and contexts.

    P and all Q begin as the same projection, the leading principal directions of representations, partly whitened; t
    and the bias are fitted by logistic regression to the sample's contexts with their own sentence and one negative.

    Args:
        sentences: the S sentences of `batch`, as `Discriminator.represent` takes them.
        batch: some whole documents.
    """
    from sklearn.linear_model import LogisticRegression

    found = model.represent(sentences)  # (S, W)
    mean = found.mean(dim=0)
    values, directions = torch.linalg.eigh(torch.cov(found.T))  # rising
    leading = directions[:, -model.rank :] * (values[-model.rank :] + values.mean()).rsqrt()  # (W, R or fewer)
    projection = torch.zeros_like(model.meet_sentence.weight)
    projection[: leading.shape[1]] = leading.T
    places = model.left + model.right
    model.meet_sentence.weight.copy_(projection)
    model.meet_sentence.bias.copy_(-projection @ mean)
    model.meet_context.weight.copy_(projection.repeat(places, 1))
    model.meet_context.bias.copy_((-projection @ mean).repeat(places))
    rng = np.random.default_rng([seed, 2])
    rows: list[tuple[int, int, int]] = []
    for i, masks in enumerate(zip(*negatives(batch), strict=True)):
        # Half of the document and half of other ones, where there are both.
        kinds = [np.flatnonzero(mask) for mask in masks if mask.any()]
        if kinds:
            rows.append((i, int(batch.centres[i]), int(rng.choice(kinds[rng.integers(len(kinds))]))))
    if not rows:
        return
    contexts, own, drawn = np.array(rows).T
    unit = torch.nn.functional.normalize(model.meet_sentence(found), dim=1)
    near = torch.cat([unit, torch.zeros_like(unit[:1])])[
        torch.from_numpy(batch.places[contexts])
    ]  # -1: the row of zeros
    features = [(unit[torch.from_numpy(row)][:, None] * near).sum(dim=2).numpy() for row in (own, drawn)]  # (C, J) each
    fitted = LogisticRegression(C=100.0, max_iter=500).fit(np.concatenate(features), np.repeat([1, 0], len(rows)))
    model.scales.copy_(torch.from_numpy(fitted.coef_[0]).float())
    model.sum_sentence.weight.zero_()
    model.sum_context.weight.zero_()
    model.sum_sentence.bias.fill_(float(fitted.intercept_[0]))
