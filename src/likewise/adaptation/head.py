"""The head of an adapted encoder: a linear map and the words of a corpus, fitted and trained on frozen vectors.

The transformer runs once over every text, so that hundreds of updates take seconds. Letters of the shapes: U different
texts, B pairs, D embedding.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize
from torch import Tensor, nn
from torch.nn import functional as F

from likewise import processor
from likewise.encoder.location import LoadError
from likewise.encoder.modules import with_modules
from likewise.encoder.word_part import WordPart
from likewise.inference.model_tokens import UnfitModel, tokens_of
from likewise.inference.vectors import Precision, encode
from likewise.losses.functional import cosine_matrix
from likewise.losses.pairs import false_negatives, filtered_contrast, similarities_keep
from likewise.runs.options import Options, option
from likewise.runs.progress import Progress, orderly_stop


class HeadTrainingOptions(Options):
    """The options of training on frozen vectors."""

    steps: int = option(300, "Number of updates.", ge=0)
    batch_size: int = option(128, "Number of pairs in a batch.", ge=2)
    neighbours: int = option(
        4, "Number of pairs of a batch that are neighbours of each other, as hard negatives; 1 uses none.", ge=1
    )
    map_rate: float = option(1e-4, "Learning rate of the linear map.", gt=0)
    word_rate: float = option(
        0.01, "Learning rate of the vectors of word pieces, as a fraction of their first length; 0 keeps them.", ge=0
    )
    temperature: float = option(0.05, "Temperature of the contrastive loss and of the keep term.", gt=0)
    keep: float = option(1.0, "Weight of the keep term.", ge=0)
    margin: float = option(10.0, "Angular margin of the contrastive loss in degrees, as in ArcCSE.", ge=0, le=90)
    negation: float = option(1.0, "Weight of the margin loss on sentences and their negations, as in SNCSE.", ge=0)


class BaseTexts:
    """The base as a function of texts: vectors, and the pieces that the part of words counts."""

    def __init__(self, encoder: SentenceTransformer, base: str) -> None:
        try:
            self.tokens = tokens_of(encoder)
        except UnfitModel as reason:
            raise LoadError(f"--base {base} cannot be adapted: {reason}. Give another base") from None
        self.encoder, self.name = encoder, base

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of the base, (S, D) float32, each of length 1."""
        # By the processor alone, not by the exports that are there: a resumed job goes on with the same numbers.
        precision: Precision = "bf16" if processor.has_bf16() else "fp32"
        return encode(self.encoder, texts, precision=precision, normalize=True)

    @property
    def embeddings(self) -> np.ndarray:
        """The input embeddings of the base, (V, E), or zeros (V, 1) if the base has none."""
        first: Any = self.encoder[0]
        try:
            embeddings: np.ndarray = first.auto_model.get_input_embeddings().weight.detach().float().cpu().numpy()
        except (AttributeError, NotImplementedError):
            return np.zeros((len(first.tokenizer), 1), dtype=np.float32)
        return embeddings


@dataclass(frozen=True)
class FrozenTexts:
    """Texts under an encoder that is not trained.

    Attributes:
        vectors: (U, D) float32, each of length 1.
        ids: Tokens of each text.
        row: Row of each text.
    """

    vectors: Tensor
    ids: Sequence[np.ndarray]
    row: Mapping[str, int]

    def rows(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return the rows of pairs of texts, (P, 2)."""
        return np.array([[self.row[text] for text in pair] for pair in pairs], dtype=np.int64).reshape(-1, 2)

    def under(self, head: Head, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (S, D) that a head makes of texts."""
        return head.all(self, np.array([self.row[text] for text in texts], dtype=np.int64))

    def batch(self, rows: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Return the vectors (B, D) of some texts, their ids in a row, and where each text starts (B,)."""
        ids = [self.ids[row] for row in rows]
        starts = np.cumsum([0, *map(len, ids[:-1])])
        flat = torch.from_numpy(np.concatenate(ids).astype(np.int64))
        return self.vectors[torch.from_numpy(rows)], flat, torch.from_numpy(starts.astype(np.int64))


class Head(nn.Module):
    """A linear map of the base's vectors, (D), at first the identity, followed by an optional `WordPart`."""

    def __init__(self, dimension: int, words: WordPart | None = None) -> None:
        super().__init__()
        self.linear, self.words = nn.Linear(dimension, dimension), words
        nn.init.eye_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, vectors: Tensor, ids: Tensor, starts: Tensor) -> Tensor:
        """Return the vectors (B, D) or (B, D + W), each of length 1, of what `FrozenTexts.batch` returns."""
        mapped = F.normalize(self.linear(vectors), dim=1)
        return mapped if self.words is None else self.words.combine(mapped, self.words.words_of(ids, starts))

    @torch.no_grad()
    def all(self, texts: FrozenTexts, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some texts, (S, D) float32."""
        blocks = [self(*texts.batch(rows[start : start + 512])).numpy() for start in range(0, len(rows), 512)]
        return np.concatenate(blocks)

    def on(self, base: SentenceTransformer) -> SentenceTransformer:
        """Return the base followed by this head; the modules of the base are shared."""
        size = self.linear.in_features
        modules: list[nn.Module] = [*base.children()]
        changed = not torch.equal(self.linear.weight, torch.eye(size)) or bool(self.linear.bias.any())
        if changed:
            weight, bias = self.linear.weight.detach().clone(), self.linear.bias.detach().clone()
            scaled = isinstance(modules[-1], Normalize)
            if not bias.any():  # the length does not matter, and more servers know Pooling and Dense side by side
                modules = modules[:-1] if scaled else modules
            elif not scaled:
                modules.append(Normalize())
            modules.append(Dense(size, size, activation_function=nn.Identity(), init_weight=weight, init_bias=bias))
            if self.words is None:
                modules.append(Normalize())
        if self.words is not None:
            modules.append(copy.deepcopy(self.words))
        return with_modules(base, modules).eval()


def train_head(
    head: Head,
    texts: FrozenTexts,
    pairs: np.ndarray,
    options: HeadTrainingOptions,
    seed: int,
    progress: Progress,
    negated: np.ndarray | None = None,
) -> Head:
    """Return a trained copy of a head; an interrupted training is not resumed, because it takes seconds.

    Args:
        pairs: (P, 2) indices of the two texts of each pair.
        negated: (K, 2) indices of sentences and of their negations.
    """
    head = copy.deepcopy(head)
    start = copy.deepcopy(head.words)
    optimizers: list[Any] = [torch.optim.AdamW([head.linear.weight], lr=options.map_rate, weight_decay=0.0)]
    if head.words is not None:
        head.words.table.requires_grad_(bool(options.word_rate))
        if options.word_rate:
            size = float(head.words.table.detach().square().mean().sqrt())
            optimizers.append(torch.optim.SparseAdam([head.words.table], lr=options.word_rate * size))
    warm_up = max(1, options.steps // 10)

    def share(step: int) -> float:
        return min((step + 1) / warm_up, (options.steps - step) / (options.steps - warm_up + 1))

    schedules = [torch.optim.lr_scheduler.LambdaLR(optimizer, share) for optimizer in optimizers]
    batches, chance = _batches(head, texts, pairs, options, seed), np.random.default_rng([seed, 6])
    # Matrices this small lose more by waiting for other cores than they gain.
    with _one_core(), orderly_stop(progress) as stop, progress.bar("training the head", options.steps) as bar:
        for _ in range(options.steps):
            stop.check()
            rows = pairs[next(batches)]
            first, second = texts.batch(rows[:, 0]), texts.batch(rows[:, 1])
            both = head(*first), head(*second)
            with torch.no_grad():
                left_out = false_negatives(first[0], second[0])
                targets = first[0] @ second[0].T
                if start is not None:
                    words = start.words_of(*first[1:]) @ start.words_of(*second[1:]).T
                    targets = targets + start.weight**2 * words
            loss = filtered_contrast(*both, left_out, options.temperature, options.margin)
            loss = loss + options.keep * similarities_keep(cosine_matrix(*both), targets, options.temperature)
            if options.negation and negated is not None and len(negated):
                some = negated[chance.permutation(len(negated))[: options.batch_size // 2]]
                loss = loss + options.negation * _lost_negation(head, texts, some)
            head.zero_grad()
            loss.backward()
            for stepped in (*optimizers, *schedules):
                stepped.step()
            bar.update(bar.done + 1, note=f"loss {loss.item():.3f}")
    return head.eval()


def _lost_negation(head: Head, texts: FrozenTexts, rows: np.ndarray) -> Tensor:
    """Return how much nearer sentences are to their negations than under the base, the mean over rows (K, 2)."""
    sentences, negations = texts.batch(rows[:, 0]), texts.batch(rows[:, 1])
    cosines = F.cosine_similarity(head(*sentences), head(*negations))
    return F.relu(cosines - F.cosine_similarity(sentences[0], negations[0])).mean()


def _batches(
    head: Head, texts: FrozenTexts, pairs: np.ndarray, options: HeadTrainingOptions, seed: int
) -> Iterator[np.ndarray]:
    """Yield the rows of each batch: random pairs, each with some of its nearest neighbors."""
    rng = np.random.default_rng([seed, 5])
    targets = torch.from_numpy(head.all(texts, pairs[:, 1]))  # (P, D)
    size = min(options.batch_size, len(pairs))
    order: list[int] = []
    while True:
        batch: dict[int, None] = {}
        while len(batch) < size:
            if not order:
                order = rng.permutation(len(pairs)).tolist()
            drawn = order.pop()
            near = (targets @ targets[drawn]).topk(min(25, len(pairs))).indices.tolist()
            for row in [drawn, *rng.permutation([i for i in near if i != drawn])[: options.neighbours - 1]]:
                if len(batch) < size:
                    batch.setdefault(int(row))
        yield np.array(list(batch))


@contextmanager
def _one_core() -> Iterator[None]:
    """Run torch on one core in a `with` block, and restore its number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
