"""What the context room still uses, until it has moved onto likewise.runs."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


@contextmanager
def reading_bar(console: Console) -> Iterator[Callable[[int, int], None]]:
    """A bar for reading files: a function that is told (bytes done, bytes in all). Gone when it is done."""
    columns = (TextColumn("reading the corpus"), BarColumn(24), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def counting_bar(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar for things that are counted: a function that is told how many were done since its last call."""
    columns = (TextColumn(what), BarColumn(24), MofNCompleteColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.advance(task, done)


class JsonlLog(TrainerCallback):
    """Appends every loss part and every score to a file, a JSON object a line, as it comes."""

    def __init__(self, path: Path, resumed_at: int = 0) -> None:
        self.path = path
        self.started = time.monotonic()
        if resumed_at:
            self._drop_after(resumed_at)

    def _drop_after(self, step: int) -> None:
        # A run that was killed may have logged steps that it will now do again.
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        kept = [line for line in lines if _step_of(line) <= step]
        self.path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

    def write(self, **entry: Any) -> None:
        """Append one entry."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Called by the trainer with losses and scores."""
        if logs and state.is_world_process_zero:
            self.write(step=state.global_step, seconds=round(time.monotonic() - self.started, 2), **logs)


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line).get("step", 0))
    except ValueError:  # a line cut in two by a kill
        return float("inf")


class ProgressBar(TrainerCallback):
    """One line with steps, time left, the last loss and the last score."""

    def __init__(self, console: Console, metric: str) -> None:
        self.console = console
        self.metric = metric
        self.bar: Progress | None = None
        self.loss = self.score = ""

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Show the bar."""
        self.bar = Progress(
            TextColumn("training"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
        )
        self.task = self.bar.add_task("", total=state.max_steps, completed=state.global_step)
        self.bar.start()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Move the bar."""
        if self.bar:
            self.bar.update(self.task, completed=state.global_step)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Show the last loss and score."""
        if not self.bar or not logs:
            return
        if "loss" in logs:
            self.loss = f"loss {logs['loss']:.4f}"
        for name, value in logs.items():
            if name.endswith(self.metric):
                self.score = f"{self.metric} {value:.4g}"  # 82.03, and errors of 0.0006 as well
        self.bar.update(self.task, description=" ".join(part for part in (self.loss, self.score) if part))

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Leave the bar on the screen as it is."""
        self.close()

    def close(self) -> None:
        """Give the terminal back, also after an error."""
        if self.bar:
            self.bar.stop()
            self.bar = None


class OrderlyStop(TrainerCallback):
    """Ctrl-C (or a termination signal) finishes the step, saves a checkpoint and stops; a second one stops at once."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.asked = False
        self._before: dict[int, Any] = {}

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self.console.print("stopping: the step is finished and saved first (again: at once)")

    def __enter__(self) -> OrderlyStop:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Save and stop, if asked to; nothing is evaluated first."""
        if self.asked and state.global_step < state.max_steps:
            control.should_save = True
            control.should_evaluate = False
            control.should_training_stop = True
