"""The training of the discriminator and of the generators: updates, evaluations, and states to resume from."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import get_scheduler

from likewise.context.stage_options import ModelOptions
from likewise.context.states import States
from likewise.context.workspace import ContextError, Stage, Workspace
from likewise.errors import counted, unread
from likewise.runs.job import Job, Resume
from likewise.runs.progress import Progress, StopRequest, orderly_stop
from likewise.runs.whole_files import Record, SavedStates, chance, checksum, set_chance, write_text

WEIGHTS, LOG = "model.safetensors", "log.jsonl"
_SAVE_SECONDS = 60.0
"""Between two states to resume from."""

Train = Callable[[Job, States, Any, StopRequest], Record]
"""Trains a model into a job's result by its options, and returns the facts for its record."""


def train_stage(
    name: str, work: str | Path, options: ModelOptions, train: Train, resume: Resume, overwrite: bool, quiet: bool
) -> Stage:
    """Train a model of a workspace, unless it is already trained; the global random state is left alone."""
    workspace = Workspace(work)
    models = ["model"] if options.reads == "pretrained" else []
    with workspace.open(name, options, ["index", "states"], models=models, resume=resume, overwrite=overwrite) as job:
        if not job.finished:
            states = States(workspace)
            if options.reads == "states" and not states.vectors.shape[1]:
                raise ContextError(
                    "the stage states contains only word pieces: rebuild it with keep=tokens, or train with reads=text"
                )
            with torch.random.fork_rng(devices=[]), orderly_stop(Progress(quiet)) as stop:
                torch.manual_seed(options.seed)
                job.finish(train(job, states, options, stop))
                stop.check()
    return workspace.require(name)


@dataclass
class Loop:
    """A training that can be stopped and resumed with bit-equal results.

    Attributes:
        job: Job that stores the states, the log and the weights.
        options: Options of rate, evaluations and clipping.
        steps: Number of updates.
        loss: Function that returns the loss of a batch, a scalar.
        evaluate: Function that returns values for the log; the weights with the highest "score" are saved.
        warmup, schedule, beta2: Schedule of the rate, and Adam's second beta.
    """

    job: Job
    model: nn.Module
    options: ModelOptions
    steps: int
    loss: Callable[[Any], Tensor]
    evaluate: Callable[[], Record]
    warmup: int
    schedule: str = "linear"
    beta2: float = 0.999
    step: int = 0
    history: list[Record] = field(default_factory=list)
    best: Record = field(default_factory=lambda: {"score": -math.inf})

    def run(self, updates: Iterator[Sequence[object]], stop: StopRequest, start: Callable[[], None]) -> Record:
        """Train from the newest state of a stopped run, or from the start, and write the best weights.

        Args:
            updates: Batches of each update from the first one on; finished updates are skipped.
            start: Function that sets the initial weights of a new run.

        Returns:
            Facts for the record of the stage.
        """
        optimizer = torch.optim.Adam(self.model.parameters(), lr=self.options.learning_rate, betas=(0.9, self.beta2))
        schedule = get_scheduler(self.schedule, optimizer, self.warmup, self.steps + 1)
        saved = SavedStates(self.job.work / "states")
        parts = {"model": self.model, "optimizer": optimizer, "schedule": schedule}
        if resumed := saved.load():
            self.step, state = resumed
            for name, part in parts.items():
                part.load_state_dict(state[name])
            self.history, self.best = state["history"], state["best"]
            for _ in range(self.step):
                next(updates)
            set_chance(state["chance"])  # to pass over updates may draw
        else:
            stop.progress.tell(
                f"{counted(self.steps, 'update')} of the {self.job.target.name}; the untrained model is evaluated first"
            )
            start()
            self._evaluate(None, stop.progress)
        saved_at, what = time.monotonic(), self.job.target.name

        def save(random_state: object) -> None:
            state = {name: part.state_dict() for name, part in parts.items()}
            saved.save(self.step, state | {"history": self.history, "best": self.best, "chance": random_state})

        with stop.progress.bar(f"training the {what}", self.steps, done=self.step) as bar:
            while self.step < self.steps:
                batches = next(updates)
                begun_with = chance() if len(batches) > 1 else None
                loss = self._backward(batches, stop)
                if loss is None:  # the update begins again
                    save(begun_with)
                    stop.check(f"after step {self.step} of {self.steps}")
                    continue
                self._update(optimizer, schedule)
                if not math.isfinite(loss):
                    raise ContextError(f"the loss of the {what} is {loss} at step {self.step}: lower learning_rate")
                if self.step % self.options.eval_steps == 0 or self.step == self.steps:
                    self._evaluate(loss, stop.progress)
                if stop.requested or time.monotonic() - saved_at > _SAVE_SECONDS:
                    save(chance())
                    saved_at = time.monotonic()
                stop.check(f"after step {self.step} of {self.steps}")
                bar.update(self.step, note=f"loss {loss:.4f}")
        self.model.load_state_dict(self.best["weights"])
        return {
            "fingerprint": save_weights(self.model.eval(), self.job.result),
            "steps": self.steps,
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
        }

    def _backward(self, batches: Sequence[object], stop: StopRequest) -> float | None:
        """Return the loss of an update; None if a stop was requested between two of its batches."""
        self.model.train()
        total = 0.0
        for number, batch in enumerate(batches):
            if number and stop.requested:
                return None
            loss = self.loss(batch) / len(batches)
            loss.backward()
            total += loss.item()
        return total

    def _update(self, optimizer: torch.optim.Optimizer, schedule: Any) -> None:
        if self.options.max_grad_norm:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.options.max_grad_norm)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        self.step += 1

    def _evaluate(self, loss: float | None, progress: Progress) -> None:
        self.model.eval()
        scores = self.evaluate()
        self.history.append({"step": self.step, "loss": loss, **scores})
        write_text(self.job.result / LOG, "".join(json.dumps(line) + "\n" for line in self.history))
        if scores["score"] > self.best["score"]:
            weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
            self.best = {"score": scores["score"], "step": self.step, "weights": weights}
        summary = ", ".join(f"{name} {value:.4g}" for name, value in scores.items() if isinstance(value, float))
        progress.tell(f"step {self.step}: {summary}")


def save_weights(model: nn.Module, folder: Path) -> str:
    """Write the weights of a model into a folder, and return the checksum of the file."""
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, folder / WEIGHTS)
    return checksum(folder / WEIGHTS)


def load_weights(stage: Stage) -> dict[str, Tensor]:
    """Return the weights of a stage by name.

    Raises:
        ContextError: If they are damaged.
    """
    try:
        return load_file(stage.folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise ContextError(unread(stage.folder / WEIGHTS, error, f"train the {stage.name} again")) from None
