"""The stage `discriminator`: the probability that a sentence fits between its left and right context (equation 1).

Each sentence has a representation h of its own: the vector of a frozen encoder, or, in the paper, the last states of a
one-layer bidirectional LSTM that is trained here (`LstmReader`). The paper concatenates the representations of left
context, centre and right context and puts one weight vector on them before the sigmoid (equation 1),

    p(y = 1 | s, c) = sigmoid(w . [h_left, h_s, h_right]).

As it stands it is a sum a(s) + b(c): no word of s can matter more in one context than in another, every sentence ranks
the contexts alike, and nothing separates a sentence from a negative. Here a term is added in which the two meet,

    w . [h_left, h_s, h_right] + sum_j t_j u(P h_s + p) . u(Q_j h_j + q_j),    u(x) = x / |x|,

over the places j of the context; a rank R of 0 leaves equation 1 as it stands. Concatenation and layer split over their
inputs (Q is one block a place), so what a context gives is a sum over its sentences, computed once and cached
(`context_part`), and so is what a sentence gives (`sentence_part`), each K numbers. Scoring S sentences against C
contexts is then one matrix product, (S, K) x (K, C).

The paper replaces the centre of a context by a sentence of the same document in half of the negative examples and by
one of the whole corpus in the other half. Here nothing is drawn: the sentences of some whole documents are represented
once, every context of theirs meets every sentence of theirs, and loss and accuracy are means over what could have been
drawn. Sentences that stand in the context itself are no negatives: next to their own copy they would be easy to tell.

Letters: B sentences of a pass, H hidden units, W width of h, S sentences, C contexts, J = left + right places around
the centre, R dimensions in which sentence and context meet, K = R + 2 numbers of a part.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus
from torch.nn.utils.rnn import pack_sequence

from likewise.context.index import ChunkStore
from likewise.context.stage_options import DiscriminatorOptions
from likewise.context.states import SentenceReading, States
from likewise.context.training_loop import Loop, load_weights, train_stage
from likewise.context.workspace import ContextError, Stage
from likewise.errors import counted
from likewise.runs.job import Job, Resume
from likewise.runs.progress import StopRequest
from likewise.runs.whole_files import Parts, Record

_IN_A_PASS = 128


class LstmReader(nn.Module):
    """A bidirectional LSTM over word pieces: the ids of sentences to (B, 2H).

    Args:
        pieces: number of ids; id 0, padding, stands for a sentence of no word piece too.
    """

    def __init__(self, pieces: int, embedding: int, hidden: int) -> None:
        super().__init__()
        self.width = 2 * hidden
        self.embed = nn.Embedding(pieces, embedding)
        self.lstm = nn.LSTM(embedding, hidden, bidirectional=True)
        nn.init.normal_(self.embed.weight, std=0.3)
        with torch.no_grad():
            for name in ("bias_ih_l0", "bias_ih_l0_reverse"):
                # Gates that remember from the start: the last state then holds something of every word.
                self.lstm.get_parameter(name)[hidden : 2 * hidden].fill_(1.0)

    def forward(self, sentences: Sequence[np.ndarray]) -> Tensor:
        """Return the representations (B, 2H) of sentences given as ids; forward state first."""
        representations = [torch.zeros(0, self.width)]
        for begin in range(0, len(sentences), _IN_A_PASS):
            ids = [torch.as_tensor(row if len(row) else [0]) for row in sentences[begin : begin + _IN_A_PASS]]
            packed = pack_sequence(ids, enforce_sorted=False)
            _, (states, _) = self.lstm(packed._replace(data=self.embed(packed.data)))  # (2, B', H)
            representations.append(torch.cat([states[0], states[1]], dim=1))
        return torch.cat(representations)


class Discriminator(nn.Module):
    """The coherence discriminator: a head on representations.

    Args:
        reader: what makes representations; None where they are vectors of a frozen encoder.
        width: W, numbers of a representation.
        left, right: places of a context.
        rank: R, dimensions in which sentence and context meet; 0: equation 1 as it stands.
    """

    def __init__(self, reader: LstmReader | None, width: int, left: int, right: int, rank: int) -> None:
        super().__init__()
        self.reader, self.left, self.right, self.rank = reader, left, right, rank
        self.width = rank + 2  # K, of the parts of the head
        places = left + right
        self.sum_sentence = nn.Linear(width, 1)  # w on h_s, and a bias
        self.sum_context = nn.Linear(width, places, bias=False)  # w on the context, a block a place
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rank 0, about layers that hold nothing
            self.meet_sentence = nn.Linear(width, rank)  # P, p
            self.meet_context = nn.Linear(width, places * rank)  # Q, q, a block a place
        self.scales = nn.Parameter(torch.ones(places))  # t

    def represent(self, sentences: Sequence[SentenceReading]) -> Tensor:
        """Return representations (B, W) of sentences: of their word pieces by the reader, or their vectors."""
        if self.reader is None:
            return torch.from_numpy(np.stack([sentence.vector for sentence in sentences]))
        representations: Tensor = self.reader([sentence.ids for sentence in sentences])
        return representations

    def sentence_part(self, representations: Tensor) -> Tensor:
        """Return the head's part of sentences (S, W), the same for every context: (S, K)."""
        summed = self.sum_sentence(representations)  # (S, 1)
        met = normalize(self.meet_sentence(representations), dim=-1)
        return torch.cat([summed, torch.ones_like(summed), met], dim=1)

    def context_part(self, representations: Tensor, places: Tensor) -> Tensor:
        """Return the head's part of contexts, the same for every sentence: (C, K).

        Args:
            representations: (S, W), of all sentences that stand in a context.
            places: (C, J) rows of `representations`, the left places (farthest first) and then the right ones
                (nearest first); -1 where the chunk has no sentence there, which brings nothing.
        """
        n, there = len(representations), places.shape[1]
        rows = torch.where(places < 0, n, places)
        at = torch.arange(there, device=places.device)

        def gathered(blocks: Tensor) -> Tensor:
            # (S, J, width), each sentence as it is in every place, to (C, width), the sum over who stands there.
            return torch.cat([blocks, blocks.new_zeros(1, *blocks.shape[1:])])[rows, at].sum(dim=1)

        summed = gathered(self.sum_context(representations)[..., None])  # (C, 1)
        met = self.meet_context(representations).reshape(n, there, self.rank)
        met = gathered(normalize(met, dim=-1) * self.scales[:, None])
        return torch.cat([torch.ones_like(summed), summed, met], dim=1)

    def logits(self, representations: Tensor, places: np.ndarray) -> Tensor:
        """Return the logits (C, S) of S sentences (S, W) in C contexts whose places (C, J) are rows of them."""
        return self.context_part(representations, torch.from_numpy(places)) @ self.sentence_part(representations).T


def coherence_loss(logits: Tensor, centres: Tensor, same: Tensor, other: Tensor) -> Tensor:
    """Return the expected loss over the draw of negatives, a scalar.

        1/2 E[-log p(own sentence)] + 1/4 E[-log (1 - p(other of the document))] + 1/4 E[-log (1 - p(of another one))]

    Where a context has no negative of one kind, those of the other kind weigh twice.

    Args:
        logits: (C, S) of every sentence in every context.
        centres: (C,) the sentence that stands in each.
        same, other: bool (C, S), the negatives of the same document and those of other documents.
    """
    positive = softplus(-logits.gather(1, centres[:, None])).mean()
    wrong = softplus(logits)  # -log (1 - p)
    counts = torch.stack([same.sum(dim=1), other.sum(dim=1)]).to(logits.dtype)  # (2, C)
    sums = torch.stack([(wrong * same).sum(dim=1), (wrong * other).sum(dim=1)])
    there = (counts > 0).to(logits.dtype)
    shares = there / there.sum(dim=0).clamp(min=1)  # halves, or one whole
    negative = (shares * sums / counts.clamp(min=1)).sum(dim=0).mean()
    return (positive + negative) / 2


def split_documents(n_documents: int, held_out: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split document numbers into those for training, for checkpoint selection, and for the reported accuracy.

    >>> [len(part) for part in split_documents(100, 0.1, seed=1)]
    [90, 5, 5]
    """
    order = np.random.default_rng([seed, 0]).permutation(n_documents)
    half = max(1, round(held_out * n_documents / 2))
    return np.sort(order[2 * half :]), np.sort(order[:half]), np.sort(order[half : 2 * half])


def training_units(store: ChunkStore, documents: np.ndarray, most: int) -> list[np.ndarray]:
    """Return the chunk numbers of each unit: one of the documents, or a part of `most` sentences of a long one."""
    begins = np.searchsorted(store.documents, documents, side="left")
    ends = np.searchsorted(store.documents, documents, side="right")
    units = []
    for begin, end in zip(begins, ends, strict=True):
        start, held = begin, 0
        for chunk in range(begin, end):
            if held and held + store.lengths[chunk] > most:
                units.append(np.arange(start, chunk))
                start, held = chunk, 0
            held += store.lengths[chunk]
        units.append(np.arange(start, end))
    return units


def epoch_batches(
    store: ChunkStore, units: list[np.ndarray], size: int, seed: int, epoch: int, all_of: bool = False
) -> Iterator[np.ndarray]:
    """Yield the chunk numbers of each batch of an epoch: units in random order, up to `size` sentences.

    A last batch of fewer is left out where there is another, but for `all_of`.
    """
    order = np.random.default_rng([seed, 1, epoch]).permutation(len(units))
    batch: list[np.ndarray] = []
    held, yielded = 0, False
    for unit in order:
        batch.append(units[unit])
        held += int(store.lengths[units[unit]].sum())
        if held >= size:
            yield np.concatenate(batch)
            batch, held, yielded = [], 0, True
    if batch and (all_of or not yielded):
        yield np.concatenate(batch)


@dataclass(frozen=True)
class ContextBatch:
    """Contexts with their sentences, among the S sentences of the batch.

    Attributes:
        sentences: int64 [S], numbers in the store.
        documents: int64 [S], the document of each.
        centres: int64 [C], the row of the sentence that belongs to each context.
        places: int64 [C, J], the rows around it; -1 where there is none.
    """

    sentences: np.ndarray
    documents: np.ndarray
    centres: np.ndarray
    places: np.ndarray


def batch_of_chunks(store: ChunkStore, chunks: np.ndarray) -> ContextBatch:
    """Return all sentences and contexts of the given chunks."""
    starts, counts = store.first_sentence[chunks], store.lengths[chunks]
    shift = np.cumsum(counts) - counts  # the row where each chunk begins
    sentences = np.repeat(starts - shift, counts) + np.arange(counts.sum())
    centres, places = store.places(store.contexts_of(chunks))
    # From numbers of the store to rows: both count on inside a chunk.
    moved = np.repeat(starts - shift, counts - 2)
    return ContextBatch(
        sentences,
        np.repeat(store.documents[chunks].astype(np.int64), counts),
        centres - moved,
        np.where(places < 0, -1, places - moved[:, None]),
    )


def negatives(batch: ContextBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return the possible negatives of each context as two masks, bool [C, S].

    Those of the same document, without centre and context, and those of other documents.
    """
    documents = batch.documents
    same = documents[batch.centres][:, None] == documents[None]  # (C, S)
    own = np.concatenate([batch.centres[:, None], batch.places], axis=1)  # (C, 1 + J)
    rows, columns = np.nonzero(own >= 0)
    allowed = same.copy()
    allowed[rows, own[rows, columns]] = False
    return allowed, ~same


_UNIT = 128
"""Most sentences of a document that stay together: longer ones are cut, so that a batch holds several documents."""
_WARMUP = 20
_SAMPLE = 150
"""Documents that the start is calibrated on, about 3,000 sentences."""
_HELD_OUT = 3_000
"""Sentences of a batch of held-out documents: other documents are those of the batch."""
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

    A stopped run that is resumed gives the weights of a run that was never stopped.

    Args:
        work: the workspace's folder, with its stages `index` and `states`.
        options: the model and its training.
        resume, overwrite, quiet: as in `likewise.context.build_index`.

    Returns:
        The stage; its record holds the held-out accuracy.

    Raises:
        ContextError: there is no index, it is stale or too small, or the training diverged.
        JobError: the stage was made with other options.
        Stopped: a stop was asked for.
    """
    return train_stage("discriminator", work, options or DiscriminatorOptions(), _train, resume, overwrite, quiet)


def _build(options: DiscriminatorOptions, states: States) -> Discriminator:
    reader = LstmReader(states.encoder.pieces, options.embedding, options.hidden) if options.reads == "text" else None
    width = reader.width if reader else states.vectors.shape[1]
    return Discriminator(reader, width, states.store.left, states.store.right, options.rank)


def _train(job: Job, states: States, options: DiscriminatorOptions, stop: StopRequest) -> Record:
    store = states.store
    n_documents = int(store.documents[-1]) + 1
    if n_documents < 4:
        raise ContextError(
            f"{store.path} holds {counted(n_documents, 'document')}, and four are needed, as two are held out: index "
            "more"
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


class CachedRanker:
    """The discriminator of a workspace: its scores of sentences in the contexts of the index.

    The parts of the contexts come from disk and those of a sentence are computed at its first use; the rest is one
    matrix product.
    """

    def __init__(self, stage: Stage, states: States) -> None:
        self.states = states
        self.model = _build(DiscriminatorOptions(**stage.record["plan"]["options"]), states).eval()
        self.model.load_state_dict(load_weights(stage))
        try:
            self.parts = np.load(stage.folder / _CONTEXTS, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise ContextError(
                f"{stage.folder / _CONTEXTS} cannot be read ({error}): train the discriminator again"
            ) from None

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
    model: Discriminator,
    sentences: Callable[[np.ndarray], Sequence[SentenceReading]],
    batches: Sequence[ContextBatch],
) -> Record:
    """Return the accuracy at p = 1/2 on held-out contexts, each with its own sentence and all possible negatives.

    It is the mean of that of the sentences in their own place and that of the negatives, of which both kinds count
    equally; None stands for that of a kind of which there is none.
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
        raise ContextError("the held-out documents give no negative: index more documents, or hold out more of them")
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
