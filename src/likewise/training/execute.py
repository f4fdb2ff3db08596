"""Carrying a prepared run through: scores before, the steps, and what is left in the run folder."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from sentence_transformers import CrossEncoder
from transformers import PrinterCallback, ProgressCallback, TrainerCallback

from likewise.encoder.modules import without_training_head
from likewise.training.callbacks import JsonlLog, OrderlyStop, ProgressBar
from likewise.training.card import model_card
from likewise.training.folder import RunFolder, RunFolderError
from likewise.training.precision import as_saved
from likewise.training.selection import Selection


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended.

    Attributes:
        path: the run folder; a model if `finished`.
        finished: False after Ctrl-C; `resume=True` goes on.
        steps: updates done.
        before: scores of the untrained encoder, by metric; {} where nothing is evaluated.
        best: {'metric', 'score', 'step', 'improved'} of the checkpoint that is kept, or None where it is simply the
            last; 'improved' is False where the untrained encoder scores as well.
        record: all that likewise.json says.
    """

    path: Path
    finished: bool
    steps: int
    before: dict[str, float]
    best: dict[str, Any] | None
    record: dict[str, Any]


def resumed_record(folder: RunFolder, record: dict[str, Any]) -> dict[str, Any]:
    """The old run's record, after a check that this one is the same run.

    Raises:
        RunFolderError: it is not; the message names the first difference.
    """
    old = folder.read_record()
    keys = ("recipe", "base", "seed", "precision")
    new_values = {**record["options"], **{key: record[key] for key in keys}}
    old_values = {**old.get("options", {}), **{key: old.get(key) for key in keys}}
    for name, value in new_values.items():
        if old_values.get(name) != value:
            raise RunFolderError(
                f"--resume: the run in {folder.path} was started with {name} {old_values.get(name)!r}, not {value!r}; "
                "give the options it was started with"
            )
    if old["corpus"]["sha256"] != record["corpus"]["sha256"]:
        unit = record["corpus"].get("unit", "sentences")
        raise RunFolderError(
            f"--resume: the corpus is not the one that the run in {folder.path} was started with "
            f"({old['corpus']['sentences']:,} {unit} then, {record['corpus']['sentences']:,} now)"
        )
    return old


def execute(
    trainer: Any,
    selection: Selection,
    folder: RunFolder,
    console: Console,
    record: dict[str, Any],
    *,
    checkpoint: Path | None = None,
    keep_checkpoints: bool = False,
    export: Callable[[Any], Any] = without_training_head,
    at_end: Callable[[Any], dict[str, Any]] | None = None,
) -> TrainingResult:
    """Train, select, save.

    Args:
        trainer: one of `likewise.training.trainer`, with its data and loss.
        selection: what picks the checkpoint.
        folder: prepared.
        console: for progress.
        record: the run's record, already in the folder; it is completed here.
        checkpoint: where to go on from.
        keep_checkpoints: leave the trainer's checkpoints in the folder.
        export: from the model that was trained to the one that is saved.
        at_end: from the saved model to further entries of the record, as its scores on a test part.

    Raises:
        ValueError: the loss has given up (the record then says why).
    """
    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
    resumed_at = int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0
    log = JsonlLog(folder.log, resumed_at)
    before = record.get("before", {})
    if selection.evaluator and not checkpoint:
        before = {name: float(value) for name, value in selection.evaluator(trainer.model).items()}
        log.write(step=0, seconds=0.0, **{f"eval_{name}": value for name, value in before.items()})
        record["before"] = before
        folder.write_record(record)
    bar = ProgressBar(console, selection.metric.removeprefix("eval_"))
    stop = OrderlyStop(console)
    for one in (log, bar, stop, _EvaluateAtTheEnd(bool(selection.evaluator))):
        trainer.add_callback(one)
    started = time.monotonic()
    try:
        with stop:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except ValueError as error:  # the loss has given up: collapse
        record.update(status="failed", error=str(error), steps=trainer.state.global_step)
        folder.write_record(record)
        raise
    finally:
        bar.close()
    steps = trainer.state.global_step
    finished = steps >= trainer.state.max_steps
    record.update(steps=steps, seconds=round(record.get("seconds", 0.0) + time.monotonic() - started, 1))
    best = None
    if finished:
        best = _best(trainer, selection, before)
        with as_saved(trainer.model):  # a cross-encoder is saved as it is, and not copied
            bare = export(trainer.model)
            record.update(status="finished", best=best, **(at_end(bare) if at_end else {}))
            folder.install_model(bare)
        own_modules = any(type(module).__module__.startswith("likewise.") for module in bare)
        card = model_card(record, own_modules, scores_pairs=isinstance(bare, CrossEncoder))
        (folder.path / "README.md").write_text(card, encoding="utf-8")
        if not keep_checkpoints:
            shutil.rmtree(folder.checkpoints, ignore_errors=True)
    else:
        record["status"] = "stopped"
    folder.write_record(record)
    return TrainingResult(folder.path, finished, steps, before, best, record)


def _best(trainer: Any, selection: Selection, before: dict[str, float]) -> dict[str, Any] | None:
    if not selection.evaluator or trainer.state.best_metric is None:
        return None
    metric, score = selection.metric.removeprefix("eval_"), float(trainer.state.best_metric)
    sign = 1 if getattr(selection.evaluator, "greater_is_better", True) else -1
    improved = metric not in before or sign * (score - before[metric]) > 0
    return {"metric": metric, "score": score, "step": trainer.state.best_global_step, "improved": improved}


class _EvaluateAtTheEnd(TrainerCallback):
    """The last step is evaluated and saved too, also where it is no multiple of `eval_steps`."""

    def __init__(self, evaluate: bool) -> None:
        self.evaluate = evaluate

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step >= state.max_steps:
            control.should_save = True
            control.should_evaluate = self.evaluate
