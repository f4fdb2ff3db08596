"""The callbacks of a training: log, progress bar, orderly stop and sealed checkpoints."""

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from likewise.errors import counted
from likewise.runs.duration import WORTH_TELLING, spoken
from likewise.runs.orderly_stop import StopRequest
from likewise.runs.parts import seal
from likewise.runs.processes import any_of, is_first
from likewise.runs.progress import Bar
from likewise.training.trainer import TrainingError

_MEASURED = 3
"""Forward passes that tell how long a training will take, after the first, which is slower."""

_REMARKS: dict[str, tuple[Callable[[float], bool], str]] = {
    "contrastive": (
        lambda loss: abs(loss) < 1e-3,
        "the contrastive loss is near 0 from the start: this base tells these sentences apart already",
    ),
    "triplets_out_of_order": (
        lambda share: share == 0,
        "the triplets are all in order for this base: so far they add nothing",
    ),
}
"""What the first value of a figure says, by its name in the log."""


class Log:
    """A log of every loss part and every score, one JSON object per line.

    Lines of steps after `done`, from which a run resumes, are dropped: these steps are repeated.
    """

    def __init__(self, path: Path, done: int = 0) -> None:
        self.path = path
        self._started = time.monotonic()
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if done and path.exists() else []
        kept = [line for line in lines if _step_of(line) <= done]
        path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

    def write(self, **entry: Any) -> None:
        """Append one entry; NaN and infinity, which JSON lacks, become null."""
        entry = {"seconds": round(time.monotonic() - self._started, 2)} | entry
        plain = {name: None if _is_wild(value) else value for name, value in entry.items()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(plain, allow_nan=False) + "\n")


def _is_wild(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line).get("step", 0))
    except ValueError:  # a line cut in two by a kill
        return math.inf


class Course(TrainerCallback):
    """The callback that follows the trainer.

    Args:
        metric: selects the checkpoint; "" for none.
        scoring: seconds that an evaluation takes; 0 if that is not known.
        usual: from a number of batches, those after the first one, to how much longer a usual batch is.
    """

    def __init__(
        self,
        log: Log | None,
        bar: Bar,
        stop: StopRequest,
        metric: str,
        scoring: float = 0.0,
        usual: Callable[[int], float] = lambda batches: 1.0,
    ) -> None:
        self.log, self.bar, self.stop, self.metric, self.scoring, self.usual = log, bar, stop, metric, scoring, usual
        self.loss = self.score = ""
        self._begun, self._passes, self._remarked = 0.0, 0, False

    def _tell_duration(self, args: Any, state: Any) -> None:
        """Tell how long a long training will take, once a few forward passes have been timed."""
        self._passes += 1
        if self._passes == 1:
            self._begun = time.monotonic()
        if self._passes != 1 + _MEASURED:
            return
        passes = args.gradient_accumulation_steps
        each = (time.monotonic() - self._begun) / _MEASURED * self.usual(_MEASURED) * passes
        left = state.max_steps - state.global_step
        every = args.eval_steps if self.metric and args.eval_strategy == "steps" else 0
        evaluations = bool(self.metric) + (left // int(every) if every else 0)
        if (seconds := each * left + evaluations * self.scoring) >= WORTH_TELLING:
            scored = f", and {counted(evaluations, 'evaluation')} of {self.scoring:.0f} s" if self.scoring >= 1 else ""
            self.stop.progress.tell(
                f"{spoken(seconds)} left: {counted(left, 'update')} of {each:.2g} s{scored}, measured on {_MEASURED} "
                "batches"
            )

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Time a pass whose gradient is accumulated."""
        self._tell_duration(args, state)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Show the step; save after the last one and before a stop."""
        self.bar.update(done=state.global_step)
        self._tell_duration(args, state)
        if state.global_step >= state.max_steps:  # also where it is not a multiple of eval_steps
            control.should_save = True
            control.should_evaluate = bool(self.metric)
        elif any_of(self.stop.asked):
            self.stop.asked = True
            control.should_save = control.should_training_stop = True
            control.should_evaluate = False

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Seal the checkpoint, so that later changes of its files are detected."""
        any_of(False)  # wait: every process writes its random state
        if is_first():
            seal(Path(args.output_dir) / f"checkpoint-{state.global_step}")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Write and show losses and scores."""
        logs = logs or {}
        if logs and self.log:
            self.log.write(step=state.global_step, **logs)
        if _is_wild(norm := logs.get("grad_norm", 0.0)):
            raise TrainingError.diverged("the norm of the gradient", norm, state.global_step)
        if "loss" in logs:
            self.loss = f"loss {logs['loss']:.4g}"
            for name, (holds, said) in () if self._remarked else _REMARKS.items():
                if name in logs and holds(logs[name]):
                    self.stop.progress.tell(said)
            self._remarked = True
        for name, value in logs.items():
            if self.metric and name.endswith(self.metric):
                self.score = f"{self.metric} {value:.4g}"  # 82.03, and errors of 0.0006 as well
        self.bar.update(note=" ".join(part for part in (self.loss, self.score) if part))
