"""The generators of the preset `frozen`: log-bilinear models of words, given the vectors of the frozen encoder.

    p(w | a, b) = softmax over w of  e_w . (A v_a + B v_b) + b_w

for each task of section 3.2.2: a sentence from both sides of its context, and either side from the sentence and the
other side. The probability of a text is that of its words in any order; v of a side is the mean vector of its
sentences. A source is left out of a tenth of the training examples, so that the same model also gives
p(w | b) and p(w), and with them log p(w | a, b) - log p(w | b), what a adds.

Letters: N examples, T words of a target, D embedding, R rank, V words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from likewise.context.chunks import ChunkStore
from likewise.context.states import States
from likewise.context.subwords import SOURCES, TASKS, Task
from likewise.context.workspace import ContextError

FILE = "bags.safetensors"
_CELLS = 1_024
"""Examples whose distributions over all words are held at a time."""
_LEFT_OUT = 0.1


class Words:
    """The most frequent word pieces of a corpus, numbered from 0: `pieces` int64 (V,) are their ids.

    Args:
        size: how many ids there are.
    """

    def __init__(self, pieces: np.ndarray, size: int) -> None:
        self.pieces = pieces
        self._number = np.full(size, -1)
        self._number[pieces] = np.arange(len(pieces))

    def __len__(self) -> int:
        return len(self.pieces)

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Return the numbers of those of the ids that are among the words."""
        found = self._number[ids]
        return found[found >= 0]


def pad_bags(bags: Sequence[np.ndarray]) -> Tensor:
    """Pad the words of N texts with -1: int64 (N, T)."""
    rows = np.full((len(bags), max(1, max((len(bag) for bag in bags), default=1))), -1)
    for row, bag in zip(rows, bags, strict=True):
        row[: len(bag)] = bag
    return torch.from_numpy(rows)


class BagGenerators(nn.Module):
    """Three log-bilinear models with common word vectors.

    Args:
        pieces: ids of the words (V,); `size` ids there are.
        width: D.
        rank: R.
    """

    def __init__(self, pieces: np.ndarray, size: int, width: int, rank: int) -> None:
        super().__init__()
        self.words = Words(pieces, size)
        self.size, self.width, self.rank = size, width, rank
        self.vectors = nn.Parameter(torch.randn(len(pieces), rank) * rank**-0.5)
        self.bias = nn.Parameter(torch.zeros(len(pieces)))
        self.read = nn.ModuleDict(
            {f"{task} {side}": nn.Linear(width, rank, bias=False) for task in TASKS for side in SOURCES[task]}
        )
        for weight in self.read.parameters():
            nn.init.normal_(weight, std=0.02)

    @torch.no_grad()
    def start(self, counts: np.ndarray, embeddings: np.ndarray | None) -> None:
        """Set the bias to log frequencies, and word vectors to the principal directions of given ones (V, any)."""
        self.bias.copy_(torch.from_numpy(np.log((counts + 1) / (counts + 1).sum())))
        if embeddings is not None:
            centred = embeddings - embeddings.mean(axis=0)
            left, values, _ = np.linalg.svd(centred, full_matrices=False)
            leading = (left * values)[:, : self.rank]
            rows = torch.from_numpy(leading / np.linalg.norm(leading, axis=1).mean())
            self.vectors[:, : rows.shape[1]].copy_(rows)

    def hidden(self, task: Task, sources: Mapping[Any, Tensor]) -> Tensor:
        """Return (N, R), the sum over the sources that are given, (N, D) each; zeros where none is."""
        found = [self.read[f"{task} {side}"](sources[side]) for side in SOURCES[task] if side in sources]
        return torch.stack(found).sum(dim=0)

    def word_log_probabilities(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return log p of each word of the targets (N, T), 0 at padding: (N, T)."""
        logs = torch.log_softmax(hidden @ self.vectors.T + self.bias, dim=1)  # (N, V)
        return logs.gather(1, targets.clamp(min=0)) * (targets >= 0)

    def loss(self, vectors: dict[str, Tensor], targets: dict[str, Tensor]) -> Tensor:
        """Return the mean over the tasks of the mean negative log probability of a word, sources left out at times."""
        losses = []
        for task in TASKS:
            sources = {}
            for side in SOURCES[task]:
                kept = torch.rand(len(vectors[side]), 1) >= _LEFT_OUT
                sources[side] = vectors[side] * kept
            logs = self.word_log_probabilities(self.hidden(task, sources), targets[task])
            losses.append(-logs.sum() / (targets[task] >= 0).sum().clamp(min=1))
        return torch.stack(losses).mean()

    @torch.no_grad()
    def mean_log_probabilities(self, task: Task, sources: Mapping[Any, Tensor], targets: Tensor) -> Tensor:
        """Return the mean log p of a word of each target (N, T): (N,) float64; 0 for a target of no word."""
        hidden = self.hidden(task, sources)
        found = []
        for rows in torch.arange(len(targets)).split(_CELLS):
            logs = self.word_log_probabilities(hidden[rows], targets[rows]).double()
            found.append(logs.sum(dim=1) / (targets[rows] >= 0).sum(dim=1).clamp(min=1))
        return torch.cat(found) if found else torch.zeros(0, dtype=torch.float64)

    def save(self, folder: Path) -> None:
        """Write the weights and the words."""
        from safetensors.torch import save_file

        tensors = {name: tensor.detach().contiguous() for name, tensor in self.state_dict().items()}
        shape = torch.tensor([self.size, self.width, self.rank])
        save_file(tensors | {"pieces": torch.from_numpy(self.words.pieces), "shape": shape}, folder / FILE)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read saved generators, in evaluation mode."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            tensors = load_file(folder / FILE)
            found = cls(tensors.pop("pieces").numpy(), *tensors.pop("shape").tolist())
            found.load_state_dict(tensors)
        except (OSError, SafetensorError, KeyError, RuntimeError) as error:
            raise ContextError(f"{folder}: no generators can be read here ({error}): train them again") from None
        return found.eval()


class Corpus:
    """The contexts of a store as input of the generators: their states, and the words that are known."""

    def __init__(self, store: ChunkStore, states: States, words: Words) -> None:
        self.store, self.states, self.words = store, states, words
        self.rows = torch.from_numpy(states.vectors)

    def sides(self, contexts: np.ndarray) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the vectors (N, D) and the words (N, T) of what stands left of, in and right of contexts."""
        centres, places = self.store.places(contexts)
        left = self.store.left
        parts = {"left": places[:, :left], "centre": centres[:, None], "right": places[:, left:]}
        vectors, targets = {}, {}
        for side, rows in parts.items():
            there = torch.from_numpy(rows >= 0)
            found = self.rows[torch.from_numpy(rows)] * there[..., None]
            vectors[side] = found.sum(dim=1) / there.sum(dim=1, keepdim=True).clamp(min=1)
            bags = [np.concatenate([self.states.pieces(i) for i in row if i >= 0]) for row in rows]
            targets[side] = pad_bags([self.words(bag) for bag in bags])
        return vectors, targets


def perplexities(model: BagGenerators, corpus: Corpus, contexts: np.ndarray, seed: int) -> dict[str, dict[str, float]]:
    """Return the perplexity of a word by task, with the right sources, shuffled ones and none.

    Shuffled sources are those of another context of those given, at a random distance round the list, so that nearly
    all are of another document.
    """
    vectors, targets = corpus.sides(contexts)
    shift = int(np.random.default_rng([seed, 3]).integers(len(contexts) // 4, 3 * len(contexts) // 4 + 1))
    given = {
        "right": vectors,
        "shuffled": {side: rows.roll(shift, dims=0) for side, rows in vectors.items()},
        "none": {side: torch.zeros_like(rows) for side, rows in vectors.items()},
    }
    found: dict[str, dict[str, float]] = {}
    for name, sources in given.items():
        found[name] = {}
        for task in TASKS:
            words = (targets[task] >= 0).sum(dim=1).double()
            means = model.mean_log_probabilities(task, sources, targets[task])
            found[name][task] = float(torch.exp(-(means * words).sum() / words.sum().clamp(min=1)))
    return found
