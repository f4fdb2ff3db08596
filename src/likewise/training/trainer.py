"""The trainers: sentence-transformers' own, with batches by length, sharpness-aware steps, and a short last layer.

The only file that calls or replaces what transformers and sentence-transformers keep private in their trainers.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from pytorch_optimizer import SAM
from sentence_transformers import SentenceTransformerTrainer
from sentence_transformers.base.trainer import BaseTrainer
from sentence_transformers.cross_encoder import CrossEncoderTrainer
from torch import Tensor, nn
from transformers import TrainerState

from likewise import processor
from likewise.encoder.attention import only_pooled_token
from likewise.encoder.modules import Features
from likewise.encoder.training_modules import MaskTape, fast_dropout
from likewise.errors import LikewiseError
from likewise.recipes.recipe_options import (
    AdamWOptions,
    ContrastiveOptions,
    SharpOptions,
    TrainingOptions,
    TrainingPrecision,
)
from likewise.runs import processes
from likewise.runs.options import OptionError
from likewise.runs.whole_files import Record, chance, set_chance
from likewise.training.batches import LengthBatchSampler, lengths_of
from likewise.training.checkpoints import reading_checkpoint
from likewise.training.memory import in_chunks, keep_pages
from likewise.training.selection import Selection


class TrainingError(LikewiseError):
    """Raised if a training cannot start or diverges; the message names the step and the cure."""

    @classmethod
    def diverged(cls, what: str, value: float, step: int) -> Self:
        """Return the error for a value that should be finite."""
        return cls(
            f"training diverged: {what} is {value} at step {step}. Nothing was saved. Lower learning_rate, raise "
            f"warmup_ratio, or use precision fp32"
        )


def use_bf16(precision: TrainingPrecision) -> bool:
    """Return whether a run uses bfloat16; with "auto", if GPU or processor are made for it (AMX, AVX-512 BF16)."""
    if precision == "bf16" and torch.cuda.is_available() and not torch.cuda.is_bf16_supported():
        raise OptionError("this GPU has no bfloat16: use --precision fp32")
    if precision == "auto" and torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if precision == "auto":
        return processor.has_bf16() and "bf16" not in processor.flags()  # that of ARM: not measured
    return precision == "bf16"


class TwoPassSAM(SAM):
    """SAM (Foret et al. 2021): `first_step` moves to the worst point within `rho`, `step` returns and updates.

    The trainer computes the gradients of the base optimizer's step in between.
    """

    def step(self, closure: object = None) -> None:  # type: ignore[override]
        """Return to the old weights, then take one step of the base optimizer."""
        self.second_step()


class TrainingSteps(BaseTrainer):
    """The training steps of both trainers.

    Args:
        options: Options of the method, from which settings outside `trainer_arguments` are read.
        settings: Arguments of sentence-transformers' trainer.
    """

    def __init__(self, options: TrainingOptions, **settings: Any) -> None:
        self.options = options
        self._rho = options.sam_rho if isinstance(options, SharpOptions) else 0.0
        self._chunk = options.chunk if isinstance(options, ContrastiveOptions) else 0
        self._passes: list[tuple[Features, list[Tensor], MaskTape | None]] = []
        self._tape: MaskTape | None = None
        self._begun = time.monotonic()
        keep_pages()
        super().__init__(**settings)
        if processes.count() > 1:  # the gradients are averaged here, see `average_gradients`
            prepare = self.accelerator.prepare_model
            self.accelerator.prepare_model = partial(prepare, evaluation_mode=True)
        trained = ((name, value) for name, value in self.model.named_parameters() if value.requires_grad)
        self._start = {name: value.detach().clone() for name, value in trained} if options.interpolation < 1 else {}

    @contextmanager
    def as_saved(self) -> Iterator[None]:
        """Run the model as it is saved: in float32, with interpolated weights.

        According to Wortsman et al. 2022, "Robust fine-tuning of zero-shot models", a model with weights between the
        base and the trained model keeps most of the gain and loses less of the base's quality.
        """
        now = dict(self.model.named_parameters())
        trained = {name: now[name].detach().clone() for name in self._start}
        # To train in bfloat16, accelerate puts a `forward` under autocast in front of the model's own.
        under_autocast = vars(self.model).pop("forward", None)
        with torch.no_grad():
            try:
                for name, start in self._start.items():
                    now[name].lerp_(start.to(now[name].device), 1 - self.options.interpolation)
                yield
            finally:
                for name, value in trained.items():
                    now[name].copy_(value)
                if under_autocast is not None:
                    vars(self.model)["forward"] = under_autocast

    def go_on(self, checkpoint: Path | None) -> None:
        """Train from a checkpoint, or from the start."""
        processes.same_weights(self.model)
        if processes.number():  # other masks of dropout than in the first process
            torch.manual_seed(self.args.seed + processes.number())
        if checkpoint:
            state = TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))
            if state.global_step >= self.args.max_steps:  # killed behind the last step: `train` would do one more
                self.state = state
                self._load_from_checkpoint(state.best_model_checkpoint or str(checkpoint))
                return
        self.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        with reading_checkpoint(checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        with reading_checkpoint(checkpoint):
            super()._load_rng_state(checkpoint)

    def add_model_card_callback(self, default_args_dict: Record) -> None:
        """Add no callback: the record of the run says more."""

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log the unrounded loss, its parts, and its further `measures`, which are not minimized."""
        logs = {**logs, "seconds": round(time.monotonic() - self._begun, 2)}
        if "loss" in logs:
            sums = self.accum_loss_components["train"]
            if steps := float(sums.pop("steps", torch.zeros(())).sum()):
                logs |= {name: float(value.sum()) / steps for name, value in sums.items()}
            sums.clear()
            if hasattr(self.loss, "measures"):
                logs |= self.loss.measures()
        super().log(logs, start_time)

    def _save(self, output_dir: str | None = None, state_dict: object = None) -> None:
        # As the base class does, less a model card for every checkpoint.
        folder = Path(output_dir or self.args.output_dir or ".")
        self.model.save_pretrained(str(folder), create_model_card=False)
        torch.save(self.args, folder / "training_args.bin")

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        # It is only logged, and torch has no norm of sparse gradients.
        sparse = any(weight.grad is not None and weight.grad.is_sparse for weight in model.parameters())
        return None if sparse else super()._get_grad_norm(model, grad_norm)

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Score the model as it would be saved."""
        with self.as_saved():
            scores: dict[str, float] = super().evaluate(*args, **kwargs)
        return scores

    def get_batch_sampler(self, dataset: Any, batch_size: int, *_: Any, seed: int = 0, **__: Any) -> LengthBatchSampler:
        """Return batches by length, of all processes; accelerate gives each process its part of a batch."""
        lengths = lengths_of(dataset, self.model) if self.options.length_batches else np.zeros(len(dataset))
        return LengthBatchSampler(lengths, batch_size * processes.count(), seed)

    def create_optimizer(self, *model: nn.Module) -> torch.optim.Optimizer:
        """Return AdamW, wrapped in SAM on request, or the optimizer that the trainer was given."""
        optimizer: torch.optim.Optimizer = super().create_optimizer(*model)
        if self._rho and not isinstance(optimizer, TwoPassSAM):
            # One group a rate and decay, as the trainer made them; AdamW's state starts empty either way.
            optimizer = self.optimizer = TwoPassSAM(
                optimizer.param_groups,
                torch.optim.AdamW,
                rho=self._rho,
                lr=self.args.learning_rate,
                betas=(self.args.adam_beta1, self.args.adam_beta2),
                eps=self.args.adam_epsilon,
            )
        return optimizer

    def training_step(
        self, model: nn.Module, inputs: Features, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Run one forward and backward pass; with SAM, repeat the passes of an update at the perturbed weights.

        The second pass uses the same dropout masks, so that both gradients belong to the same function, as in SAM's
        paper.
        """
        own_loss: Any = self.loss
        if hasattr(own_loss, "steps"):
            own_loss.step, own_loss.steps = self.state.global_step, self.state.max_steps
        loss = self._passes_of(model, inputs, num_items_in_batch)
        value = float(loss)
        if processes.any_of(not math.isfinite(value)):
            raise TrainingError.diverged("the loss", value, self.state.global_step + 1)
        return loss

    def _passes_of(self, model: nn.Module, inputs: Features, num_items_in_batch: Tensor | int | None) -> Tensor:
        # torch's DataParallel would copy a layer with the replaced method of the first device's.
        pooled = nullcontext() if self.args.n_gpu > 1 else only_pooled_token(self.model)
        with fast_dropout(self.model, lambda: self._tape), pooled, in_chunks(self.model, self._chunk):
            if self._rho:
                self._tape = None if self._chunk else MaskTape()  # a chunk draws its masks twice in one pass
                self._passes.append((dict(inputs), chance(), self._tape))
            loss = super().training_step(model, inputs, num_items_in_batch)
            if self.accelerator.sync_gradients:
                self._average_gradients()
                if self._rho:
                    self._gradients_at_worst_point(model, num_items_in_batch)
                    self._average_gradients()
            return loss

    def _average_gradients(self) -> None:
        if processes.count() > 1 and self.optimizer:
            processes.average_gradients(weight for group in self.optimizer.param_groups for weight in group["params"])

    def _gradients_at_worst_point(self, model: nn.Module, num_items_in_batch: Tensor | int | None) -> None:
        sam: Any = getattr(self.optimizer, "optimizer", self.optimizer)  # accelerate wraps it
        sam.first_step(zero_grad=True)
        after = chance()
        # Cloned: the trainer counts the steps in place.
        parts = {
            kind: {name: value.clone() for name, value in sums.items()}
            for kind, sums in self.accum_loss_components.items()
        }
        for inputs, before, tape in self._passes:
            set_chance(before)
            if tape:
                tape.rewind()
            self._tape = tape
            super().training_step(model, inputs, num_items_in_batch)
        set_chance(after)
        # What is logged is the loss at the weights, not at the worst point near them.
        self.accum_loss_components = parts
        self._passes.clear()
        self._tape = None


class LikewiseTrainer(TrainingSteps, SentenceTransformerTrainer):
    """The trainer of an encoder, with one vector per sentence."""


class PairTrainer(TrainingSteps, CrossEncoderTrainer):
    """The trainer of a cross-encoder, with one score per pair of sentences."""


def trainer_arguments(
    options: TrainingOptions,
    checkpoints: Path,
    seed: int,
    selection: Selection,
    n_rows: int,
    kind: type[LikewiseTrainer] | type[PairTrainer] = LikewiseTrainer,
) -> Any:
    """Return a recipe's options as the arguments of transformers' trainer."""
    steps_an_epoch = n_rows // (options.batch_size * processes.count()) // options.accumulation
    steps = options.max_steps or steps_an_epoch * options.epochs
    every = min(options.eval_steps or steps, steps)
    warmup, schedule = (
        (options.warmup_ratio, options.schedule) if isinstance(options, AdamWOptions) else (0.0, "linear")
    )
    return kind.training_args_class(
        output_dir=str(checkpoints),
        per_device_train_batch_size=options.batch_size,
        gradient_accumulation_steps=options.accumulation,
        learning_rate=options.learning_rate,
        # Epochs only bound the order of the data; the steps end the run.
        num_train_epochs=math.ceil(steps / steps_an_epoch),
        max_steps=steps,
        warmup_steps=int(warmup * steps),
        lr_scheduler_type=schedule,
        weight_decay=options.weight_decay,
        max_grad_norm=options.max_grad_norm,
        bf16=use_bf16(options.precision),
        use_cpu=not torch.cuda.is_available() and not torch.backends.mps.is_available(),
        eval_strategy="steps" if selection.evaluator else "no",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,  # the older one is used if the newer one is damaged
        load_best_model_at_end=bool(selection.evaluator),
        metric_for_best_model=selection.metric or None,
        greater_is_better=getattr(selection.evaluator, "greater_is_better", True),
        logging_strategy="steps",
        # A short run shows a course between its evaluations too.
        logging_steps=max(1, min(10, every // 4)),
        logging_nan_inf_filter=False,  # `training_step` looks at every loss
        report_to=options.trackers or "none",
        disable_tqdm=True,
        seed=seed,
        data_seed=seed,
        dataloader_drop_last=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        remove_unused_columns=False,
        accelerator_config={"split_batches": processes.count() > 1},
    )
