"""Training the coherence discriminator: the stage `discriminator` of a workspace."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise.context.chunks import ChunkStore
from likewise.context.coherence import (
    Examples,
    batches,
    coherence_loss,
    examples_of,
    negatives,
    split_documents,
    training_units,
)
from likewise.context.discriminator import Discriminator, save_discriminator
from likewise.context.discriminator_accuracy import accuracy_of
from likewise.context.discriminator_start import begin_as_bag_of_words, begin_vectors, calibrate, word_vectors_of
from likewise.context.errors import ContextError
from likewise.context.indexing import open_store
from likewise.context.options import DiscriminatorOptions
from likewise.context.ranking import cache_contexts
from likewise.context.token_ids import Sentences, encode_cut
from likewise.context.vocabulary import Vocabulary
from likewise.context.workspace import Stage, StageWork, Workspace
from likewise.runs.whole_files import written_whole

if TYPE_CHECKING:
    from rich.console import Console

_CHECKPOINT, _LOG = "checkpoint.pt", "log.jsonl"
_UNIT = 128
"""Most sentences of a document that stay together: longer ones are cut, so that a batch holds several documents."""
_WARMUP = 20
_SAMPLE = 150
"""Documents that the start is calibrated on, about 3,000 sentences."""


@dataclass
class _State:
    """What a checkpoint holds beside the weights."""

    step: int = 0
    best: float = -1.0
    best_step: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)


def train_discriminator(
    work: str | Path,
    options: DiscriminatorOptions | None = None,
    *,
    overwrite: bool = False,
    console: Console | None = None,
) -> Stage | None:
    """Make the stage `discriminator`, go on with it where it was stopped, or find it there.

    A stopped run that goes on gives the weights of a run that was never stopped.

    Args:
        work: the workspace's folder, with its stage `index`.
        options: the model and its training.
        overwrite: make it anew.
        console: where progress is shown; None shows none.

    Returns:
        The stage, its facts holding the held-out accuracy; None where Ctrl-C stopped it.

    Raises:
        ContextError: there is no index, it is stale or too small, or other options made what lies there.
    """
    options = options or DiscriminatorOptions()
    workspace = Workspace(work)
    found = workspace.begin("discriminator", options, needs=("index",), overwrite=overwrite)
    if isinstance(found, Stage):
        return found
    store = open_store(workspace.require("index"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        return _Training(found, store, options, console).run()


class _Training:
    """One run: what is made once, and the loop."""

    def __init__(
        self, work: StageWork, store: ChunkStore, options: DiscriminatorOptions, console: Console | None
    ) -> None:
        self.work, self.store, self.options, self.console = work, store, options, console
        n_documents = int(store.documents[-1]) + 1
        if n_documents < 4:
            raise ContextError(f"{store.path}: {n_documents} documents: four or more are needed, two of them held out")
        train, choose, test = split_documents(n_documents, options.held_out, options.seed)
        self.choose, self.test = (self._examples(documents) for documents in (choose, test))
        self.units = training_units(train, store.documents, store.lengths, _UNIT)
        self.vocabulary = self._vocabulary(train)
        self.sentences = Sentences(store, self.vocabulary, options.max_tokens)
        self.model = Discriminator(
            len(self.vocabulary),
            options.embedding,
            options.hidden,
            store.left,
            store.right,
            options.head,
            options.rank,
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.learning_rate)
        self.state = _State()
        self.best: dict[str, torch.Tensor] = {}

    def run(self) -> Stage | None:
        if not self._resume():
            self._start()
        steps = list(self._steps())
        try:
            with self._bar("training the discriminator", len(steps)) as tell:
                tell(self.state.step)
                self._loop(steps, tell)
            self.model.load_state_dict(self.best)
            save_discriminator(self.work.folder, self.model, self.options.max_tokens)
            with self._bar("caching the contexts", len(self.store)) as tell:
                cache_contexts(
                    self.work.folder,
                    self.model.eval(),
                    self.store,
                    lambda texts: encode_cut(self.vocabulary, texts, self.options.max_tokens),
                    tell,
                )
        except KeyboardInterrupt:
            if self.state.step:
                self._save()
            return None
        held_out = accuracy_of(self.model, self.sentences, self.test, self.options.seed)
        stage = self.work.finish(
            {
                "held_out": asdict(held_out),
                "chosen_by": {"accuracy": self.state.best, "step": self.state.best_step},
                "steps": self.state.step,
                "cpu_seconds": round(self.state.seconds, 1),
                "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            }
        )
        (stage.folder / _CHECKPOINT).unlink(missing_ok=True)  # not before: the stage may be stopped until it is there
        return stage

    def _loop(self, steps: list[np.ndarray], tell: Callable[[int], None]) -> None:
        saved = time.time()
        if not self.state.step:
            self._look(float("nan"))
        for chunks in steps[self.state.step :]:
            began = time.process_time()
            for group in self.optimizer.param_groups:
                group["lr"] = self.options.learning_rate * rate_at(self.state.step, len(steps))
            loss = self._step(chunks)
            self.state.step += 1
            self.state.seconds += time.process_time() - began
            if self.state.step % self.options.eval_steps == 0 or self.state.step == len(steps):
                self._look(loss)
            if time.time() - saved > self.options.save_seconds:
                self._save()
                saved = time.time()
            tell(1)

    def _step(self, chunks: np.ndarray) -> float:
        examples = examples_of(self.store, chunks)
        loss = loss_over(self.model, self.model.represent(self.sentences[examples.sentences]), examples)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.max_grad_norm)
        self.optimizer.step()
        return loss.item()

    def _look(self, loss: float) -> None:
        """Write down the accuracy on the documents that choose the checkpoint; keep the weights if it is the best."""
        found = accuracy_of(self.model, self.sentences, self.choose, self.options.seed)
        row = {
            "step": self.state.step,
            "loss": None if math.isnan(loss) else loss,
            "cpu_seconds": round(self.state.seconds, 1),
            **asdict(found),
        }
        self.state.history.append(row)
        with (self.work.folder / _LOG).open("w", encoding="utf-8") as log:
            log.writelines(json.dumps(line) + "\n" for line in self.state.history)
        if found.accuracy > self.state.best:
            self.state.best, self.state.best_step = found.accuracy, self.state.step
            self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        if self.console is not None:
            self.console.print(
                f"step {self.state.step}: held-out accuracy {found.accuracy:.1%} "
                f"(same document {found.same_document:.1%}, other {found.other_document:.1%})"
            )

    def _start(self) -> None:
        vectors = word_vectors_of(self.vocabulary, self.options.vectors) if self.options.vectors else {}
        if self.options.start == "random":
            begin_vectors(self.model, vectors)
            return
        sample = examples_of(self.store, np.concatenate(self.units[:_SAMPLE]))
        begin_as_bag_of_words(self.model, vectors, self.sentences.frequencies(len(self.vocabulary)))
        calibrate(self.model, self.sentences[sample.sentences], sample, self.options.seed)

    def _steps(self) -> Iterator[np.ndarray]:
        for epoch in range(self.options.epochs):
            yield from batches(self.units, self.store.lengths, self.options.batch_size, self.options.seed, epoch)

    def _examples(self, documents: np.ndarray) -> Examples:
        return examples_of(self.store, np.flatnonzero(np.isin(self.store.documents, documents)))

    def _vocabulary(self, train: np.ndarray) -> Vocabulary:
        folder = self.work.folder / "vocabulary"
        if folder.exists():
            return Vocabulary.load(folder)
        chunks = np.flatnonzero(np.isin(self.store.documents, train))
        texts = [sentence for chunk in chunks.tolist() for sentence in self.store[chunk].sentences]
        vocabulary = Vocabulary.train(texts, self.options.vocabulary)
        unfinished = folder.with_suffix(".tmp")
        vocabulary.save(unfinished)
        unfinished.rename(folder)
        return vocabulary

    def _save(self) -> None:
        path = self.work.folder / _CHECKPOINT
        content = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "state": asdict(self.state),
            "best": self.best,
        }
        with written_whole(path) as unfinished:
            torch.save(content, unfinished)

    def _resume(self) -> bool:
        path = self.work.folder / _CHECKPOINT
        if not path.exists():
            return False
        content = torch.load(path, weights_only=True)
        self.model.load_state_dict(content["model"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.state, self.best = _State(**content["state"]), content["best"]
        return True

    def _bar(self, what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        from likewise.training.progress import counting_bar

        return _silent() if self.console is None else counting_bar(self.console, what, total)


def loss_over(model: Discriminator, representations: torch.Tensor, examples: Examples) -> torch.Tensor:
    """The loss of some whole documents from the representations (S, 2H) of their sentences, a scalar."""
    same, other = (torch.from_numpy(mask) for mask in negatives(examples))
    contexts = model.context_part(representations, torch.from_numpy(examples.places))
    logits = model.combine(model.sentence_part(representations), contexts).T  # (C, S)
    return coherence_loss(logits, torch.from_numpy(examples.centres), same, other)


def rate_at(step: int, steps: int) -> float:
    """Share of the peak learning rate at a step (from 0): up over 20 steps, then down in a line to 0 at the end.

    >>> [round(rate_at(step, 120), 2) for step in (0, 19, 70, 119)]
    [0.05, 1.0, 0.5, 0.01]
    """
    warmup = min(_WARMUP, max(1, steps // 2))
    return min((step + 1) / warmup, (steps - step) / max(1, steps - warmup), 1.0)


@contextmanager
def _silent() -> Iterator[Callable[[int], None]]:
    yield lambda done: None
