"""The training loop of the discriminator and the generators: updates, evaluations, and states to resume from."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from likewise.context.workspace import ContextError
from likewise.runs.job import Job
from likewise.runs.progress import Progress
from likewise.runs.states import SavedStates, chance, set_chance
from likewise.runs.stopping import StopRequest
from likewise.runs.whole_files import write_text

LOG = "log.jsonl"
_SAVE_SECONDS = 60.0
"""Between two states to resume from."""


@dataclass
class Loop:
    """A training that can be stopped and resumed with bit-equal results.

    Attributes:
        job: keeps the states, and the log in its result.
        optimizer, schedule: of its parameters; the schedule steps after each update.
        loss: gives the loss of a batch, a scalar.
        evaluate: gives plain values for the log; where "score" is among them, the weights of the highest are kept.
        eval_steps: updates between two evaluations; one more is done before the first update and after the last.
        max_grad_norm: gradients are clipped to it; 0: never.
    """

    job: Job
    model: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: Any
    loss: Callable[[Any], Tensor]
    evaluate: Callable[[], dict[str, Any]]
    eval_steps: int
    max_grad_norm: float
    step: int = 0
    cpu_seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    best: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.states = SavedStates(self.job.work / "states")

    def resume(self) -> bool:
        """Restore the newest state of a stopped run; return whether there was one."""
        found = self.states.load()
        if found is None:
            return False
        self.step, state = found
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.cpu_seconds, self.history, self.best = state["cpu_seconds"], state["history"], state["best"]
        set_chance(state["chance"])
        return True

    def run(
        self, updates: Iterator[Sequence[Any]], steps: int, what: str, progress: Progress, stop: StopRequest
    ) -> None:
        """Train from the state that `resume` restored.

        Args:
            updates: the batches of each update from the first one on; those that were done are passed over.
        """
        now = chance()  # to pass over updates may draw
        for _ in range(self.step):
            next(updates)
        if self.step:
            set_chance(now)
        else:
            self._evaluate(None, progress)
        saved = time.monotonic()
        with progress.bar(f"training the {what}", steps, done=self.step) as bar:
            while self.step < steps:
                began = time.process_time()
                loss = self._update(next(updates))
                self.step += 1
                self.cpu_seconds += time.process_time() - began
                if not math.isfinite(loss):
                    raise ContextError(f"the loss of the {what} is {loss} at step {self.step}: lower learning_rate")
                if self.step % self.eval_steps == 0 or self.step == steps:
                    self._evaluate(loss, progress)
                if stop.asked or time.monotonic() - saved > _SAVE_SECONDS:
                    self._save()
                    saved = time.monotonic()
                stop.check(f"after step {self.step} of {steps}")
                bar.update(self.step, note=f"loss {loss:.4f}")
        if self.best:
            self.model.load_state_dict(self.best["weights"])

    def _update(self, batches: Sequence[Any]) -> float:
        self.model.train()
        total = 0.0
        for batch in batches:
            loss = self.loss(batch) / len(batches)
            loss.backward()
            total += loss.item()
        if self.max_grad_norm:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad()
        return total

    def _evaluate(self, loss: float | None, progress: Progress) -> None:
        found = self.evaluate()
        row = {"step": self.step, "loss": loss, "cpu_seconds": round(self.cpu_seconds, 1), **found}
        self.history.append(row)
        write_text(self.job.result / LOG, "".join(json.dumps(line) + "\n" for line in self.history))
        if "score" in found and found["score"] > self.best.get("score", -math.inf):
            weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
            self.best = {"score": found["score"], "step": self.step, "weights": weights}
        shown = ", ".join(f"{name} {value:.4g}" for name, value in found.items() if isinstance(value, float))
        progress.tell(f"step {self.step}: {shown}")

    def _save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "cpu_seconds": self.cpu_seconds,
            "history": self.history,
            "best": self.best,
            "chance": chance(),
        }
        self.states.save(self.step, state)
