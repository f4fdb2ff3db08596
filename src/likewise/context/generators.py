"""The generators of equation 2: the probability of a sentence, or of either side of its context, from the other two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from likewise.context.network import Transformer
from likewise.context.options import GeneratorOptions
from likewise.context.subwords import SOURCES, TASKS, Cutter, Example, ExamplePieces, Padded, Task, Vocabulary, pad
from likewise.context.workspace import ContextError
from likewise.runs.whole_files import read_json, write_json, written_whole

CONFIG, WEIGHTS = "generators.json", "model.safetensors"


class Generators(nn.Module):
    """Three conditional language models: p(centre | left, right), p(left | centre, right), p(right | left, centre).

    Equation 2: the probability of a text is the product of its tokens', each given the tokens before it and what is
    read. The end token is one of them, so that the probabilities of all texts sum to one.
    """

    def __init__(self, options: GeneratorOptions, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.options = options
        self.vocabulary = vocabulary
        self.cutter = Cutter(vocabulary, options.max_tokens, options.max_sentences)
        names = ("all",) if options.networks == "one" else TASKS
        self.networks = nn.ModuleDict({name: Transformer(options, len(vocabulary)) for name in names})

    def network(self, task: Task) -> Any:
        """Return the network of a task, which may be the one for all tasks."""
        return self.networks["all" if "all" in self.networks else task]

    def first(self, task: Task) -> int:
        """Return the start token of a task; with a network per task it is the common one."""
        return self.vocabulary.tasks[task] if "all" in self.networks else self.vocabulary.bos

    def last_states(self, batch: dict[Task, Padded], task: Task, cache: dict[Any, Tensor] | None = None) -> Tensor:
        """Return the decoder's last states for a batch of examples: (B, T, D).

        The memories of single texts are kept in `cache` for the next task of the same batch.
        """
        network = self.network(task)
        cache = {} if cache is None else cache
        read = SOURCES[task]
        for side in read:
            if (id(network), side) not in cache:
                cache[id(network), side] = network.remember(network.encode(batch[side]))
        memory = torch.cat([cache[id(network), side] for side in read], dim=1)
        mask = torch.cat([batch[side].mask for side in read], dim=1)
        states: Tensor = network.finish(network.start(batch[task], self.first(task)), memory, mask)
        return states

    def log_probabilities(self, batch: dict[Task, Padded]) -> dict[Task, Tensor]:
        """Return, for each task, the log probabilities of all real tokens of its targets: (N,)."""
        cache: dict[Any, Tensor] = {}
        found: dict[Task, Tensor] = {}
        for task in TASKS:
            mask = batch[task].mask
            last = self.last_states(batch, task, cache)[mask]
            found[task] = self.network(task).log_probabilities(last, batch[task].ids[mask])
        return found

    def loss(self, batch: dict[Task, Padded]) -> Tensor:
        """Return the mean over the three tasks of the mean negative log probability of a token."""
        found = self.log_probabilities(batch)
        return -torch.stack([part.mean() for part in found.values()]).mean()

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    def save(self, folder: str | Path) -> None:
        """Save weights and vocabulary, and last the configuration, each atomically."""
        from safetensors.torch import save_model

        folder = Path(folder)
        self.vocabulary.save(folder)
        with written_whole(folder / WEIGHTS) as unfinished:
            save_model(self, str(unfinished))
        content = {"options": self.options.to_dict(), "vocabulary": self.vocabulary.fingerprint}
        write_json(folder / CONFIG, content)

    @classmethod
    def load(cls, folder: str | Path, device: torch.device | str = "cpu") -> Self:
        """Load saved generators, in evaluation mode.

        Raises:
            ContextError: there are none in the folder, or they do not fit its vocabulary.
        """
        from safetensors.torch import load_model

        folder = Path(folder)
        if not (folder / CONFIG).is_file():
            raise ContextError(f"there are no trained generators in '{folder}': train them first")
        content = read_json(folder / CONFIG)
        options, vocabulary = GeneratorOptions(**content["options"]), Vocabulary.load(folder)
        if vocabulary.fingerprint != content["vocabulary"]:
            raise ContextError(f"the vocabulary in '{folder}' is not the one of its generators: train them again")
        found = cls(options, vocabulary)
        load_model(found, str(folder / WEIGHTS))
        return found.to(device).eval()


def batch_of(pieces: Sequence[ExamplePieces], padding: int) -> dict[Task, Padded]:
    """Return examples as a batch."""
    return {task: pad([piece[task] for piece in pieces], padding) for task in TASKS}


@dataclass(frozen=True)
class Perplexity:
    """The perplexity of a model on held-out examples: exp of the mean negative log probability of a token.

    Attributes:
        tokens: how many tokens each task's targets have, the end tokens among them.
        negative: the sum of their negative log probabilities, in nats.
    """

    tokens: dict[Task, int]
    negative: dict[Task, float]

    def of(self, *tasks: Task) -> float:
        """Return the perplexity over the targets of the given tasks, by default of all."""
        chosen = tasks or TASKS
        return math.exp(sum(self.negative[t] for t in chosen) / max(1, sum(self.tokens[t] for t in chosen)))

    def to_dict(self) -> dict[str, float]:
        """Return the perplexity by task, "all" first."""
        return {"all": self.of(), **{task: self.of(task) for task in TASKS}}


def perplexity(generators: Generators, examples: Sequence[Example], batch_size: int = 32) -> Perplexity:
    """Return the perplexity of generators; their mode is restored."""
    was_training = generators.training
    generators.eval()
    tokens, negative = dict.fromkeys(TASKS, 0), dict.fromkeys(TASKS, 0.0)
    with torch.inference_mode():
        for pieces in _by_length(generators.cutter.examples(examples), batch_size):
            batch = batch_of(pieces, generators.vocabulary.pad)
            batch = {task: part.to(generators.device) for task, part in batch.items()}
            for task, found in generators.log_probabilities(batch).items():
                tokens[task] += len(found)
                negative[task] -= float(found.double().sum())
    generators.train(was_training)
    return Perplexity(tokens, negative)


def _by_length(pieces: list[ExamplePieces], batch_size: int) -> Iterator[list[ExamplePieces]]:
    order = sorted(pieces, key=lambda piece: sum(map(len, piece.values())))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
