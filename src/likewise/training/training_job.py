"""A training as a job: checked before it starts, resumed after a kill, with an atomically written model."""

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import CrossEncoder, SentenceTransformer
from torch import nn
from transformers import (
    PrinterCallback,
    ProgressCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from likewise.encoder.location import model_fingerprint
from likewise.encoder.modules import without_training_head
from likewise.errors import counted, require_extra, weights_for_all
from likewise.evaluation.task import Items
from likewise.inference.load_model import load
from likewise.losses.encoder_loss import CollapseError
from likewise.recipes.recipe_options import TrainingOptions
from likewise.runs import processes
from likewise.runs.job import Job, Plan, Resume, check_target, complete_installation, open_job
from likewise.runs.options import OptionError, checked_seed, write_toml
from likewise.runs.progress import WORTH_TELLING, Bar, Progress, StopRequest, orderly_stop, spoken
from likewise.runs.whole_files import Record, Values, seal, write_text
from likewise.training.checkpoints import newest_checkpoint
from likewise.training.selection import Selection
from likewise.training.trainer import LikewiseTrainer, PairTrainer, TrainingError, trainer_arguments, use_bf16
from likewise.training.training_result import TrainingResult, base_fingerprint, made_by, trained_card
from likewise.transformers_output import no_bar, no_warning_of_times

if TYPE_CHECKING:
    from likewise.recipes.recipe import Optimizers

_Trainer = LikewiseTrainer | PairTrainer
_MEASURED = 5
"""Forward passes that tell how long a training will take, after the first, which is slower."""
_REMARKS: dict[str, tuple[Callable[[float], bool], str]] = {
    "contrastive": (
        lambda loss: abs(loss) < 1e-3,
        "the contrastive loss is near 0 from the start: this base already distinguishes these sentences",
    ),
    "triplets_out_of_order": (
        lambda share: share == 0,
        "all triplets are already in order for this base, and add nothing so far",
    ),
}
"""What the first value of a figure says, by its name in the log."""


def write_log(path: Path, before: Mapping[str, float], history: Sequence[Record]) -> None:
    """Write the scores of the base, and every loss part and every score, one JSON object per line.

    NaN and infinity, which JSON lacks, become null.
    """
    first = [{"step": 0, "seconds": 0.0, **{f"eval_{name}": value for name, value in before.items()}}] if before else []
    plain = [
        {name: None if _is_wild(value) else value for name, value in entry.items()} for entry in (*first, *history)
    ]
    write_text(path, "".join(f"{json.dumps(entry, allow_nan=False)}\n" for entry in plain))


class Course(TrainerCallback):
    """The callback that follows the trainer.

    Args:
        log: File of the log; None in a process that writes none.
        metric: Metric that selects the checkpoint; "" for none.
        before: Scores of the base.
        scoring: Number of seconds of an evaluation; 0 if it is not known.
    """

    def __init__(
        self,
        log: Path | None,
        bar: Bar,
        stop: StopRequest,
        metric: str,
        before: Mapping[str, float] = {},
        scoring: float = 0.0,
    ) -> None:
        self.log, self.bar, self.stop, self.metric, self.before, self.scoring = log, bar, stop, metric, before, scoring
        self.loss = self.score = ""
        self._begun, self._passes, self._remarked = 0.0, 0, False

    def _tell_duration(self, args: TrainingArguments, state: TrainerState) -> None:
        """Tell how long a long training will take, once a few forward passes have been timed."""
        self._passes += 1
        if self._passes == 1:
            self._begun = time.monotonic()
        if self._passes != 1 + _MEASURED:
            return
        passes = args.gradient_accumulation_steps
        each = (time.monotonic() - self._begun) / _MEASURED * passes
        left = state.max_steps - state.global_step
        every = args.eval_steps if self.metric and args.eval_strategy == "steps" else 0
        evaluations = bool(self.metric) + (left // int(every) if every else 0)
        if (seconds := each * left + evaluations * self.scoring) >= WORTH_TELLING:
            scored = f", and {counted(evaluations, 'evaluation')} of {self.scoring:.0f} s" if self.scoring >= 1 else ""
            self.stop.progress.tell(
                f"{spoken(seconds)} left: {counted(left, 'update')} of {each:.2g} s{scored}, measured on {_MEASURED} "
                "batches"
            )

    def on_substep_end(self, args: TrainingArguments, state: TrainerState, *_: object, **__: object) -> None:
        """Time a pass whose gradient is accumulated."""
        self._tell_duration(args, state)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Show the step; save after the last one and before a stop."""
        self.bar.update(done=state.global_step)
        self._tell_duration(args, state)
        if state.global_step >= state.max_steps:  # also where it is not a multiple of eval_steps
            control.should_save = True
            control.should_evaluate = bool(self.metric)
        elif processes.any_of(self.stop.requested):
            self.stop.requested = True
            control.should_save = control.should_training_stop = True
            control.should_evaluate = False

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Seal the checkpoint, so that later changes of its files are detected."""
        processes.any_of(False)  # wait: every process writes its random state
        if processes.is_first():
            seal(Path(args.output_dir or "") / f"checkpoint-{state.global_step}")

    def on_log(self, args: object, state: TrainerState, *_: object, logs: Record | None = None, **__: object) -> None:
        """Write and show losses and scores."""
        logs = logs or {}
        if self.log:
            write_log(self.log, self.before, state.log_history)
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


def started(out: str | os.PathLike[str], options: TrainingOptions, seed: int, quiet: bool) -> Progress:
    """Join the other processes, and check the arguments of a training before base and data are read.

    A model that a kill has left half installed in `out`, which may be the base, is completed.
    """
    processes.start()
    checked_seed(seed)
    use_bf16(options.precision)
    for tracker in options.trackers:
        require_extra(tracker, f"report_to {tracker}", tracker)

    def by_first() -> None:
        check_target(out)
        complete_installation(out)

    processes.by_first(by_first)
    return Progress(quiet or not processes.is_first())


def check_updates(n_rows: int, options: TrainingOptions, unit: str = "sentences") -> None:
    """Check that the rows fill one update."""
    several = f" x {processes.count()} processes" if processes.count() > 1 else ""
    if n_rows < options.batch_size * options.accumulation * processes.count():
        raise OptionError(
            f"{n_rows:,} training {unit} are fewer than one update of {options.batch_size} x {options.accumulation}"
            f"{several}: give more of them, or a smaller batch_size or accumulation"
        )


def check_finite(model: Any, dataset: Dataset, what: str) -> None:
    """Check the vectors of a few texts of the first column; the model's mode and the random state are restored."""
    texts = dataset[:8][dataset.column_names[0]]
    training = model.training
    with torch.random.fork_rng():
        if isinstance(model, CrossEncoder):
            vectors = model.predict([(text, text) for text in texts], show_progress_bar=False)
        else:
            vectors = model.encode(list(texts), show_progress_bar=False)
    model.train(training)
    if not np.isfinite(np.asarray(vectors, dtype=np.float64)).all():
        raise TrainingError(f"{what} gives vectors that are not finite: use another base or a lower learning_rate")


@dataclass(frozen=True)
class Training:
    """A training whose input has been checked.

    Attributes:
        job: Name of the job in the words of the command line, "train arccse".
        name, preset, base, seed: Entries of the record; the seed determines all randomness.
        dataset: Training rows: 'sentence' and 'words', or texts and 'label'.
        corpus: Facts about the data: 'sources', 'sentences' (number of rows), 'unit' (name of a row), 'sha256'.
        model: SentenceTransformer, or a CrossEncoder.
        collator: Function from rows to a batch.
        export: Function from the trained model to the saved model.
        optimizers: Function from the number of updates to optimizer and schedule; (None, None) is AdamW.
        config: Arguments of the training for run.toml, which `--config` of the command line reads; {} writes no file.
        at_end: Function from the saved model to further facts, such as its scores on a test part.
        as_shipped: Whether to evaluate the unchanged base before training, instead of the untrained encoder, which
            differs from it.
    """

    job: str
    name: str
    preset: str
    base: str
    seed: int
    options: TrainingOptions
    dataset: Dataset
    corpus: Values
    selection: Selection
    model: SentenceTransformer | CrossEncoder
    loss: nn.Module
    collator: Callable[[list[Record]], Record]
    export: Callable[[Any], Any] = without_training_head
    optimizers: "Callable[[int], Optimizers]" = lambda steps: (None, None)
    config: Values = field(default_factory=dict)
    at_end: Callable[[Any], Record] = lambda model: {}
    facts: Values = field(default_factory=dict)
    as_shipped: bool = False

    @no_bar()  # one bar is enough
    @no_warning_of_times()
    def run(
        self, out: str | os.PathLike[str], progress: Progress, *, resume: Resume, overwrite: bool
    ) -> TrainingResult:
        """Train into a folder, or return at once if the same training is finished there.

        Raises:
            TrainingError: If the base gives vectors that are not finite, or training diverged; nothing is installed.
            CollapseError: If all sentences have come to have one vector.
            JobError: If the folder cannot be taken, see `open_job`.
            Stopped: If the job is interrupted; the same command resumes it.
        """
        check_finite(self.model, self.dataset, f"the base {self.base}")
        with ExitStack() as stack:  # the others get the job to read from

            def opened() -> Job:
                return stack.enter_context(open_job(out, self.plan(out), resume=resume, overwrite=overwrite))

            job = processes.by_first(opened)
            if job.thrown_away:
                progress.tell(job.thrown_away)
            if job.finished is None:
                try:
                    self._train(job, progress)
                except (TrainingError, CollapseError):
                    if processes.is_first():
                        job.discard()  # it would diverge again from its last checkpoint
                    raise
            elif processes.is_first():
                progress.tell(job.already)
            assert job.finished is not None
            return TrainingResult(job.target, job.finished)

    def plan(self, out: str | os.PathLike[str]) -> Plan:
        """Return the plan: everything that determines the result."""
        options = self.options.to_dict() | {"precision": self.precision}
        options |= {"base": self.base, "seed": self.seed, "selection": self.selection.description}
        inputs = {"base": base_fingerprint(self.base, out), "corpus": self.corpus["sha256"]}
        for what, name in self.options.inputs().items():
            if (content := model_fingerprint(name)) != name:
                inputs[what] = content
        inputs["selection's data"] = self.selection.fingerprint
        if processes.count() > 1:
            inputs["number of processes"] = processes.count()
        return Plan(self.job, options, inputs, defaults=self.options.defaults())

    @property
    def precision(self) -> str:
        """The numerical precision, resolved for this machine."""
        return "bf16" if use_bf16(self.options.precision) else "fp32"

    def _train(self, job: Job, progress: Progress) -> None:
        checkpoints = job.work.resolve() / "checkpoints"
        checkpoint, done = processes.by_first(lambda: newest_checkpoint(checkpoints))
        # A tracker that writes files here would write them among the checkpoints, which go.
        os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(Path(f"{job.target}.tensorboard").absolute()))
        trainer = self._trainer(checkpoints)
        # Also where a checkpoint is resumed, the weights are still the base's.
        begun = time.monotonic()
        with progress.bar("scoring the base"):
            before, items = processes.by_first(lambda: self._score_base(trainer))
        scoring = time.monotonic() - begun if before else 0.0
        for callback in (PrinterCallback, ProgressCallback):
            trainer.remove_callback(callback)
        most = trainer.args.max_steps
        with orderly_stop(progress) as stop, progress.bar("training", most, done=done, stays=True) as bar:
            log = job.work / "log.jsonl" if processes.is_first() else None
            trainer.add_callback(Course(log, bar, stop, self.selection.metric, before, scoring))
            with weights_for_all():
                trainer.go_on(checkpoint)
            if trainer.state.global_step < most:
                stop.check(f"after step {trainer.state.global_step} of {most}")

        job.finished = processes.by_first(lambda: job.finish(self._result(job, trainer, before, items)))

    def _score_base(self, trainer: _Trainer) -> tuple[dict[str, float], Items | None]:
        """Return the scores of the unchanged base, and their items."""
        evaluator = self.selection.evaluator
        if not evaluator:
            return {}, None
        with torch.random.fork_rng():  # loading a model may draw numbers, and training must not depend on it
            shipped = load(self.base, precision="fp32") if self.as_shipped else None
        before = {name: float(value) for name, value in evaluator(shipped or trainer.model).items()}
        return before, evaluator.items

    def _result(self, job: Job, trainer: _Trainer, before: Mapping[str, float], items: Items | None) -> Record:
        """Write the files of the result, and return the facts for its record."""
        most = trainer.args.max_steps
        facts = {
            "recipe": self.name,
            "kind": "cross-encoder" if isinstance(trainer.model, CrossEncoder) else "encoder",
            "preset": self.preset,
            "options": self.options.to_dict(),
            "base": self.base,
            "base_run": made_by(self.base),
            "seed": self.seed,
            "corpus": dict(self.corpus),
            "selection": self.selection.description,
            "precision": self.precision,
            **self.facts,
            "steps": most,
            "before": dict(before),
        }
        with trainer.as_saved():  # a cross-encoder is saved directly, and not copied
            model = self.export(trainer.model)
            check_finite(model, self.dataset, f"training diverged by step {most}: the model")
            facts["best"] = self.selection.best(trainer.state, before, model, items)
            facts |= self.at_end(model)
            shutil.rmtree(job.result)  # half of a model, after a kill
            model.save_pretrained(str(job.result), create_model_card=False)
        write_text(job.result / "README.md", trained_card(facts, model))
        write_log(job.result / "log.jsonl", before, trainer.state.log_history)
        if self.config:
            write_text(job.result / "run.toml", write_toml(self.config))
        return facts

    def _trainer(self, checkpoints: Path) -> _Trainer:
        kind = PairTrainer if isinstance(self.model, CrossEncoder) else LikewiseTrainer
        args = trainer_arguments(self.options, checkpoints, self.seed, self.selection, len(self.dataset), kind)
        return kind(
            self.options,
            model=self.model,
            args=args,
            optimizers=self.optimizers(args.max_steps),
            train_dataset=self.dataset,
            loss=self.loss,
            evaluator=self.selection.evaluator,
            data_collator=self.collator,
        )


def _is_wild(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
