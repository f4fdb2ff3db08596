"""The stage `discriminator`: its training, the cached parts of all contexts, and their scores.

Letters: S sentences, C contexts, J places around a centre, K numbers of a part, W width of a representation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from likewise.context.discriminator import Discriminator, LstmReader, coherence_loss
from likewise.context.discriminator_data import (
    ContextBatch,
    batch_of_chunks,
    epoch_batches,
    negatives,
    split_documents,
    training_units,
)
from likewise.context.stage_options import DiscriminatorOptions
from likewise.context.states import SentenceReading, States
from likewise.context.training_loop import Loop, load_weights, train_stage
from likewise.context.workspace import ContextError, Stage
from likewise.errors import counted, unread
from likewise.runs.job import Job, Resume
from likewise.runs.progress import StopRequest
from likewise.runs.whole_files import Parts, Record

_UNIT = 128
"""Most sentences of a document that stay together: longer ones are cut, so that a batch contains several documents."""
_WARMUP = 20
_SAMPLE = 150
"""Documents that the start is calibrated on, about 3,000 sentences."""
_HELD_OUT = 3_000
"""Sentences of a batch of held-out documents: other documents are the others in the batch."""
_CONTEXTS = "contexts.npy"
_AT_ONCE = 200
"""Chunks represented at once, about 2,000 sentences."""


def train_discriminator(
    work: str | Path,
    options: DiscriminatorOptions | None = None,
    *,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
) -> Stage:
    """Train the discriminator of a workspace, unless it is already trained.

    An interrupted run is resumed and reaches the same weights as an uninterrupted run.

    Args:
        work: Path to the workspace with the stages `index` and `states`.
        options: Options of the model and of its training.
        resume, overwrite, quiet: See `likewise.context.build_index`.

    Returns:
        The stage; its record contains the held-out accuracy.

    Raises:
        ContextError: If the index is missing, stale or too small, or if the training diverges.
        JobError: If the stage was built with different options.
        Stopped: If the job is interrupted; the same call resumes it.
    """
    return train_stage("discriminator", work, options or DiscriminatorOptions(), _train, resume, overwrite, quiet)


class CachedRanker:
    """The discriminator of a workspace: its scores of sentences in the contexts of the index.

    The parts of the contexts come from disk, and a sentence's parts are computed at its first use; the rest is one
    matrix product.
    """

    def __init__(self, stage: Stage, states: States) -> None:
        self.states = states
        self.model = _build(DiscriminatorOptions(**stage.record["plan"]["options"]), states).eval()
        self.model.load_state_dict(load_weights(stage))
        try:
            self.parts = np.load(stage.folder / _CONTEXTS, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise ContextError(unread(stage.folder / _CONTEXTS, error, "train the discriminator again")) from None

    @torch.no_grad()
    def sentence_parts(self, readings: Sequence[SentenceReading]) -> Tensor:
        """Return the head's part of sentences, the same for every context: (S, K)."""
        return self.model.sentence_part(self.model.represent(readings))

    def context_parts(self, contexts: np.ndarray) -> Tensor:
        """Return the head's part of contexts by number, the same for every sentence: (C, K)."""
        return torch.from_numpy(np.ascontiguousarray(self.parts[contexts]))

    def scores(self, sentence: str, contexts: np.ndarray) -> np.ndarray:
        """Return log p(y = 1 | s, c) of equation 1 of a sentence in contexts by number, float32 [C]."""
        logits = (self.sentence_parts(self.states.read([sentence])) @ self.context_parts(contexts).T)[0]
        return torch.nn.functional.logsigmoid(logits).numpy()


@torch.no_grad()
def accuracy_of(
    model: Discriminator, sentences: Callable[[np.ndarray], Sequence[SentenceReading]], batches: Sequence[ContextBatch]
) -> Record:
    """Return the accuracy at p = 1/2 on held-out contexts, each with its own sentence and all possible negatives.

    It is the mean of the accuracy for sentences in their own context and for negatives, in which both kinds of
    negatives have equal weight; None means that there are no negatives of a kind.
    """
    positive: list[np.ndarray] = []
    by_kind: tuple[list[float], list[float]] = ([], [])
    for batch in batches:
        fits = model.logits(model.represent(sentences(batch.sentences)), batch.places).numpy() > 0  # (C, S)
        positive.append(fits[np.arange(len(fits)), batch.centres])
        for of_kind, mask in zip(by_kind, negatives(batch), strict=True):
            counts = mask.sum(axis=1)
            of_kind += ((~fits & mask).sum(axis=1)[counts > 0] / counts[counts > 0]).tolist()
    if not any(by_kind):
        raise ContextError("the held-out documents contain no negative: index or hold out more documents")
    own = float(np.concatenate(positive).mean())
    same, other = (float(np.mean(of_kind)) if of_kind else None for of_kind in by_kind)
    wrong = float(np.mean([share for share in (same, other) if share is not None]))
    shares = {"accuracy": (own + wrong) / 2, "positive": own, "same_document": same, "other_document": other}
    return shares | {"contexts": sum(map(len, positive))}


@torch.no_grad()
def calibrate(model: Discriminator, sentences: Sequence[SentenceReading], batch: ContextBatch, seed: int) -> None:
    """Set P, Q, t and the biases from a sample: one space for sentences and contexts; nothing for equation 1 alone.

    P and all Q begin as the same projection, the leading principal directions of representations, partly whitened; t
    and the bias are fitted by logistic regression to the sample's contexts with their own sentence and one negative.
    """
    from sklearn.linear_model import LogisticRegression

    if not model.rank:
        return
    representations = model.represent(sentences)  # (S, W)
    mean = representations.mean(dim=0)
    values, directions = torch.linalg.eigh(torch.cov(representations.T))  # rising
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
    unit = normalize(model.meet_sentence(representations), dim=1)
    # A place of -1 is the row of zeros.
    near = torch.cat([unit, torch.zeros_like(unit[:1])])[torch.from_numpy(batch.places[contexts])]
    features = [(unit[torch.from_numpy(row)][:, None] * near).sum(dim=2).numpy() for row in (own, drawn)]  # (C, J) each
    fitted = LogisticRegression(C=100.0, max_iter=500).fit(np.concatenate(features), np.repeat([1, 0], len(rows)))
    model.scales.copy_(torch.from_numpy(fitted.coef_[0]).float())
    model.sum_sentence.weight.zero_()
    model.sum_context.weight.zero_()
    model.sum_sentence.bias.fill_(float(fitted.intercept_[0]))


def _build(options: DiscriminatorOptions, states: States) -> Discriminator:
    reader = LstmReader(states.encoder.pieces, options.embedding, options.hidden) if options.reads == "text" else None
    width = reader.width if reader else states.vectors.shape[1]
    return Discriminator(reader, width, states.store.left, states.store.right, options.rank)


def _train(job: Job, states: States, options: DiscriminatorOptions, stop: StopRequest) -> Record:
    store = states.store
    n_documents = int(store.documents[-1]) + 1
    if n_documents < 4:
        raise ContextError(
            f"{store.path} contains {counted(n_documents, 'document')}, but four are needed, of which two are held "
            f"out: "
            f"index more"
        )
    train, choose, test = split_documents(n_documents, options.held_out, options.seed)
    units = training_units(store, train, _UNIT)
    model = _build(options, states)
    updates = [
        [chunks]
        for epoch in range(options.epochs)
        for chunks in epoch_batches(store, units, options.batch_size, options.seed, epoch)
    ]

    def held_out(documents: np.ndarray) -> Record:
        parts = training_units(store, documents, _HELD_OUT)
        batches = [batch_of_chunks(store, b) for b in epoch_batches(store, parts, _HELD_OUT, 0, 0, all_of=True)]
        return accuracy_of(model, states.of, batches)

    def loss(chunks: np.ndarray) -> Tensor:
        batch = batch_of_chunks(store, chunks)
        logits = model.logits(model.represent(states.of(batch.sentences)), batch.places)
        same, other = (torch.from_numpy(mask) for mask in negatives(batch))
        return coherence_loss(logits, torch.from_numpy(batch.centres), same, other)

    def evaluate() -> Record:
        accuracies = held_out(choose)
        return {"score": accuracies["accuracy"], **accuracies}

    def start() -> None:
        sample = batch_of_chunks(store, np.concatenate(units[:_SAMPLE]))
        calibrate(model, states.of(sample.sentences), sample, options.seed)

    warmup = min(_WARMUP, len(updates) // 2)
    loop = Loop(job, model, options, len(updates), loss, evaluate, warmup)
    facts = loop.run(iter(updates), stop, start)
    _cache_contexts(job, model, states, stop)
    chosen_by = {"accuracy": loop.best["score"], "step": loop.best["step"]}
    return facts | {"held_out": held_out(test), "chosen_by": chosen_by}


@torch.no_grad()
def _cache_contexts(job: Job, model: Discriminator, states: States, stop: StopRequest) -> None:
    """Write the head's context parts (C, K) of all contexts into a job's result, block by block."""
    store, blocks = states.store, Parts(job.work / "contexts")
    begins = range(0, len(store), _AT_ONCE)
    with stop.progress.bar("caching the contexts", len(begins), done=len(blocks)) as bar:
        for begin in begins:
            if f"{begin}.npy" in blocks:
                continue
            batch = batch_of_chunks(store, np.arange(begin, min(begin + _AT_ONCE, len(store))))
            represented = model.represent(states.of(batch.sentences))
            with blocks.new(f"{begin}.npy") as path, path.open("wb") as file:
                np.save(file, model.context_part(represented, torch.from_numpy(batch.places)).numpy())
            bar.advance()
            stop.check(f"after {len(blocks)} of {len(begins)} blocks of contexts")
    shape = (store.n_contexts, model.width)
    parts = np.lib.format.open_memmap(job.result / _CONTEXTS, mode="w+", dtype=np.float32, shape=shape)
    for begin in begins:
        end = min(begin + _AT_ONCE, len(store))
        parts[store.first_context[begin] : store.first_context[end]] = np.load(blocks.path(f"{begin}.npy"))
    parts.flush()
