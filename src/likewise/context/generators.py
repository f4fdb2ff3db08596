"""The generators of equation 2: the probability of a sentence, or of either side of its context, from the other two.

Two families do the same three tasks. `LogBilinear`, of the preset `frozen`, gives the words of a text, in any order, by
the vectors of a frozen encoder,

    p(w | a, b) = softmax over w of  e_w . (A v_a + B v_b) + b_w,

where v of a side is the mean vector of its sentences. `Transformers`, of the preset `paper`, has an encoder-decoder for
each task, trained from scratch (`likewise.context.transformer`); its texts end with an end token. Both leave a source
out of a tenth of the training examples, so that the same model gives p(w | b) and p(w) too, and with them
log p(w | a, b) - log p(w | b), what a adds.

Letters: N texts, T words of a target, M tokens of a memory, D width of a vector, R rank, V words.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from likewise.context.chunks import ChunkStore
from likewise.context.options import GeneratorOptions
from likewise.context.states import SentenceReading, States
from likewise.context.workspace import ContextError

Side = Literal["centre", "left", "right"]
TASKS: tuple[Side, ...] = ("centre", "left", "right")
"""The tasks: to generate the sentence, the left or the right context, from the other two."""
SOURCES: dict[Side, tuple[Side, Side]] = {
    "centre": ("left", "right"),
    "left": ("centre", "right"),
    "right": ("left", "centre"),
}
"""The texts that each task reads, in their order."""
SentenceReadings = Sequence[SentenceReading]
"""The sentences of one side of a context, or one sentence."""
WEIGHTS = "model.safetensors"
_FACTS = "generators"
_LEFT_OUT = 0.1


class Memory(NamedTuple):
    """The states of N texts that a decoder reads: values (N, M, width), and where there is a token (N, M)."""

    values: Tensor
    mask: Tensor

    def take(self, rows: Tensor) -> Memory:
        """Return the memory of the texts of the given rows."""
        mask = self.mask[rows]
        longest = int(mask.sum(dim=1).max()) if len(mask) else 0
        return Memory(self.values[rows, :longest], mask[:, :longest])

    def without(self, left_out: Tensor) -> Memory:
        """Return the memory with the texts left out where (N,) is True."""
        return Memory(self.values, self.mask & ~left_out[:, None].to(self.mask.device))


class Generators(nn.Module):
    """Three conditional models: p(centre | left, right), p(left | centre, right), p(right | left, centre).

    Args:
        pieces: ids of the known words (V,), the most frequent word pieces of a corpus; others are passed over.
        size: how many ids there are.
    """

    family: str
    at_once: int
    """Words whose distributions over all words are held at a time."""

    def __init__(self, pieces: np.ndarray, size: int) -> None:
        super().__init__()
        self.pieces, self.size = pieces, size
        self._number = np.full(size, -1)
        self._number[pieces] = np.arange(len(pieces))

    def words(self, ids: np.ndarray) -> np.ndarray:
        """Return the numbers of those of the ids that are known."""
        found = self._number[ids]
        return found[found >= 0]

    @staticmethod
    def best_device() -> str:
        """Return where such models run."""
        return "cpu"

    @abstractmethod
    def encode(self, task: Side, side: Side, texts: Sequence[SentenceReadings]) -> Memory:
        """Return what a task reads of texts that stand at a side."""

    @abstractmethod
    def targets(self, texts: Sequence[SentenceReadings]) -> Tensor:
        """Return the words of texts that are generated, padded with -1: int64 (N, T)."""

    @abstractmethod
    def log_probabilities(self, task: Side, memories: Sequence[Memory], targets: Tensor) -> Tensor:
        """Return log p of each word of targets (N, T) given N texts of each source: (N, T), 0 at padding."""

    @abstractmethod
    def start(self, counts: np.ndarray, embeddings: np.ndarray) -> None:
        """Begin at the counts (V,) of the words in the corpus and the encoder's input vectors (V, any) of them."""

    @abstractmethod
    def shape(self) -> dict[str, int]:
        """Return the arguments of the family beside pieces and size."""

    def loss(self, texts: Mapping[Side, Sequence[SentenceReadings]]) -> Tensor:
        """Return the mean over the tasks of the mean negative log probability of a word, sources left out at times."""
        losses = []
        for task in TASKS:
            memories = [self.encode(task, side, texts[side]) for side in SOURCES[task]]
            memories = [memory.without(torch.rand(len(memory.mask)) < _LEFT_OUT) for memory in memories]
            targets = self.targets(texts[task])
            logs = self.log_probabilities(task, memories, targets)
            losses.append(-logs.sum() / (targets >= 0).sum().clamp(min=1))
        return torch.stack(losses).mean()

    @torch.no_grad()
    def means(self, task: Side, memories: Sequence[Memory], targets: Tensor, rows: Mapping[Any, Any]) -> Tensor:
        """Return the mean log p of a word of K cells: (K,) float64; 0 for a target of no word.

        Args:
            memories: of the distinct texts of each source of the task.
            targets: of the distinct texts (N, T).
            rows: (K,) of each side, the text of every cell.
        """
        lengths = (targets >= 0).sum(dim=1)
        own = torch.as_tensor(rows[task])
        of = [torch.as_tensor(rows[side]) for side in SOURCES[task]]
        order = torch.argsort(lengths[own], stable=True)  # near-equal lengths share a batch
        found = torch.zeros(len(own), dtype=torch.float64)
        begin = 0
        while begin < len(order):
            longest = int(lengths[own[order[min(begin + self.at_once, len(order)) - 1]]])
            cells = order[begin : begin + max(1, self.at_once // max(1, longest))]
            begin += len(cells)
            longest = int(lengths[own[cells]].max())
            given = [memory.take(of[i][cells]) for i, memory in enumerate(memories)]
            logs = self.log_probabilities(task, given, targets[own[cells], :longest]).double().cpu()
            found[cells] = logs.sum(dim=1) / lengths[own[cells]].clamp(min=1)
        return found

    def save(self, folder: Path) -> None:
        """Write the weights and the words."""
        from safetensors.torch import save_file

        tensors = {name: tensor.detach().contiguous() for name, tensor in self.state_dict().items()}
        facts = json.dumps({"family": self.family, "size": self.size, **self.shape()})
        # One entry: several are written in an order that changes from run to run.
        save_file(tensors | {"pieces": torch.from_numpy(self.pieces)}, folder / WEIGHTS, metadata={_FACTS: facts})


class LogBilinear(Generators):
    """Log-bilinear models with common word vectors.

    Args:
        width: D.
        rank: R.
    """

    family = "log-bilinear"
    at_once = 20_000

    def __init__(self, pieces: np.ndarray, size: int, width: int, rank: int) -> None:
        super().__init__(pieces, size)
        self.width, self.rank = width, rank
        self.vectors = nn.Parameter(torch.randn(len(pieces), rank) * rank**-0.5)
        self.bias = nn.Parameter(torch.zeros(len(pieces)))
        self.read = nn.ModuleDict(
            {f"{task} {side}": nn.Linear(width, rank, bias=False) for task in TASKS for side in SOURCES[task]}
        )
        for weight in self.read.parameters():
            nn.init.normal_(weight, std=0.02)

    def shape(self) -> dict[str, int]:
        """Return width and rank."""
        return {"width": self.width, "rank": self.rank}

    @torch.no_grad()
    def start(self, counts: np.ndarray, embeddings: np.ndarray) -> None:
        """Set the bias to log frequencies, and word vectors to the principal directions of given ones."""
        self.bias.copy_(torch.from_numpy(np.log((counts + 1) / (counts + 1).sum())))
        left, values, _ = np.linalg.svd(embeddings - embeddings.mean(axis=0), full_matrices=False)
        leading = (left * values)[:, : self.rank]
        rows = torch.from_numpy(leading / np.linalg.norm(leading, axis=1).mean())
        self.vectors[:, : rows.shape[1]].copy_(rows)

    def encode(self, task: Side, side: Side, texts: Sequence[SentenceReadings]) -> Memory:
        """Return one token a text, the map of its mean vector."""
        nothing = np.zeros(self.width, np.float32)
        means = [np.mean([one.vector for one in text], axis=0) if text else nothing for text in texts]
        values = self.read[f"{task} {side}"](torch.from_numpy(np.stack(means)))
        return Memory(values[:, None], torch.ones(len(texts), 1, dtype=torch.bool))

    def targets(self, texts: Sequence[SentenceReadings]) -> Tensor:
        """Return the words of all sentences of each text."""
        return padded([np.concatenate([self.words(one.ids) for one in text] or [np.zeros(0, int)]) for text in texts])

    def log_probabilities(self, task: Side, memories: Sequence[Memory], targets: Tensor) -> Tensor:
        """Return log p of each word, by one distribution a text."""
        hidden = torch.stack([(memory.values * memory.mask[..., None]).sum(dim=1) for memory in memories]).sum(dim=0)
        found = [
            torch.log_softmax(part @ self.vectors.T + self.bias, dim=1).gather(1, words.clamp(min=0)) * (words >= 0)
            for part, words in zip(hidden.split(1024), targets.split(1024), strict=True)
        ]
        return torch.cat(found) if found else torch.zeros(targets.shape)


def padded(rows: Sequence[np.ndarray]) -> Tensor:
    """Pad the words of N texts with -1: int64 (N, T)."""
    found = np.full((len(rows), max(1, max(map(len, rows), default=1))), -1)
    for row, words in zip(found, rows, strict=True):
        row[: len(words)] = words
    return torch.from_numpy(found)


def make_generators(options: GeneratorOptions, store: ChunkStore, states: States, pieces: np.ndarray) -> Generators:
    """Return untrained generators."""
    from likewise.context.transformer import Transformers

    size = states.encoder.pieces
    if options.reads == "states":
        return LogBilinear(pieces, size, states.vectors.shape[1], options.rank)
    sizes = {name: getattr(options, name) for name in ("width", "heads", "feed_forward", "layers")}
    most = {"sentences": max(store.left, store.right), "max_tokens": states.encoder.max_tokens}
    return Transformers(pieces, size, **sizes, **most, dropout=options.dropout).to(Transformers.best_device())


def load_generators(folder: Path) -> Generators:
    """Read saved generators, in evaluation mode."""
    from safetensors import SafetensorError, safe_open

    from likewise.context.transformer import Transformers

    try:
        with safe_open(folder / WEIGHTS, "pt") as file:
            facts = json.loads(file.metadata()[_FACTS])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dictionary
        family: Any = {kind.family: kind for kind in (LogBilinear, Transformers)}[facts.pop("family")]
        found = family(tensors.pop("pieces").numpy(), **facts)
        found.load_state_dict(tensors)
    except (OSError, SafetensorError, KeyError, RuntimeError, ValueError, TypeError) as error:
        raise ContextError(f"{folder}: no generators can be read here ({error}): train them again") from None
    return cast(Generators, found.to(family.best_device()).eval())


class Corpus:
    """The contexts of a store, as texts."""

    def __init__(self, store: ChunkStore, states: States) -> None:
        self.store, self.states = store, states

    def texts(self, contexts: np.ndarray) -> dict[Side, list[SentenceReadings]]:
        """Return what stands left of, in and right of contexts."""
        centres, places = self.store.places(contexts)
        rows = {"left": places[:, : self.store.left], "centre": centres[:, None], "right": places[:, self.store.left :]}
        states = self.states
        return {
            cast(Side, side): [
                [SentenceReading(states.vectors[i], states.pieces(i), states.vectors[:0]) for i in row if i >= 0]
                for row in found
            ]
            for side, found in rows.items()
        }
