"""The trainers: sentence-transformers' own, with batches by length, sharpness-aware steps, and a short last layer.

The only file that calls or replaces what transformers and sentence-transformers keep private in their trainers.
A large batch can be encoded in chunks, so that its memory is that of one chunk (Gao et al. 2021, "Scaling Deep
Contrastive Learning Batch Size under Memory Limited Setup"): the loss needs the vectors of the whole batch and the
activations of none. Each chunk is a checkpoint of torch: its activations are dropped after the forward pass and made
again, under the same dropout masks, when the gradient reaches it. The gradient is that of the whole batch; the price is
a second forward pass.
"""

import ctypes
import math
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Self

import numpy as np
import torch
from datasets import Dataset
from pytorch_optimizer import SAM
from sentence_transformers import SentenceTransformerTrainer
from sentence_transformers.base.trainer import BaseTrainer
from sentence_transformers.cross_encoder import CrossEncoderTrainer
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as recomputed
from torch.utils.data import BatchSampler, RandomSampler
from transformers import PreTrainedTokenizerBase, TrainerState

from likewise import processor
from likewise.encoder.attention import only_pooled_token
from likewise.encoder.modules import Features, forward_replaced, modes_restored
from likewise.encoder.training_modules import fast_dropout
from likewise.errors import LikewiseError
from likewise.recipes.recipe import TrainingOptions, TrainingPrecision
from likewise.runs import processes
from likewise.runs.job import JobError
from likewise.runs.options import OptionError
from likewise.runs.whole_files import Record, chance, is_sealed, read_json, seal, set_chance, write_json
from likewise.training.selection import Selection

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_LARGEST = (1 << 30, 1 << 25)  # bytes; some releases of glibc refuse more than the second


@cache
def keep_pages() -> bool:
    """Let this process keep the memory that it frees; return whether that was set.

    glibc gives a large tensor pages of its own, and gives them back to the system when the tensor is freed. A step of
    training makes and frees hundreds of them, and the system clears each page again before the next step writes to it:
    a seventh of the time of a step. It is set once in a process, under Linux with glibc alone.
    """
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):  # another C library, such as musl, has no mallopt
        mallopt = ctypes.CDLL(None).mallopt
        kept = any(mallopt(_MMAP_THRESHOLD, size) for size in _LARGEST)
        return kept and bool(mallopt(_TRIM_THRESHOLD, (1 << 31) - 1))
    return False


@contextmanager
def in_chunks(model: nn.Module, rows: int) -> Iterator[None]:
    """Let an encoder take its batches in chunks of some rows in a `with` block; 0 leaves it as it is."""
    if not rows:
        yield
        return
    whole = model.forward

    def forward(features: Features, **settings: object) -> Features:
        size = len(features["input_ids"])
        if size <= rows or not torch.is_grad_enabled():
            return whole(features, **settings)

        modes = {module: module.training for module in model.modules()}

        def vectors(chunk: Features) -> Tensor:
            with modes_restored(model):
                for module, mode in modes.items():
                    module.training = mode  # dropout may be off for this pass alone, and on when the gradient comes
                embedding: Tensor = whole(dict(chunk), **settings)["sentence_embedding"]
            return embedding

        pieces: list[Tensor] = [
            recomputed(vectors, _part(features, size, start, start + rows), use_reentrant=False)
            for start in range(0, size, rows)
        ]
        return features | {"sentence_embedding": torch.cat(pieces)}

    with forward_replaced(model, forward):
        yield


def _part(features: Features, size: int, start: int, end: int) -> Features:
    """Return some rows of features (B, T), without the padding that the longer ones needed."""
    length = features["input_ids"].shape[1]
    columns = features["attention_mask"][start:end].any(dim=0).nonzero()
    longest = int(columns.max()) + 1 if len(columns) else length
    part = dict(features)
    for name, value in features.items():
        if isinstance(value, Tensor) and value.ndim and len(value) == size:
            rows = value[start:end]
            part[name] = rows[:, :longest] if rows.ndim > 1 and rows.shape[1] == length else rows
    return part


BATCHES_IN_A_POOL = 50
"""How many batches are cut from one length-sorted pool. More: less padding; fewer: more chance in who meets whom."""


class TokenLengths:
    """The number of tokens in each row of a dataset, counted on demand: a short run tokenizes few rows.

    Numbers of words are not enough: batches of 64 Wikipedia sentences that are sorted by them are 37% padding.

    Args:
        dataset: a Hugging Face dataset.
        columns: the columns of texts, whose lengths are added up.
        tokenizer: a tokenizer of transformers.
    """

    def __init__(self, dataset: Dataset, columns: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> None:
        self.dataset, self.columns, self.tokenizer = dataset.select_columns(list(columns)), columns, tokenizer

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of tokens (R,) of rows (R,)."""
        texts = self.dataset[rows]
        ids = [self.tokenizer(list(texts[name]), verbose=False)["input_ids"] for name in self.columns]
        return np.array([list(map(len, column)) for column in ids]).sum(axis=0)


class LengthBatchSampler(BatchSampler):
    """A sampler of batches by length: rows are shuffled, sorted inside pools, cut, and the batches shuffled.

    A batch then wastes little on padding, and a sentence meets other negatives in every epoch. A last, smaller batch is
    dropped, since it would have fewer negatives.

    Args:
        lengths: a length for each row, in any unit; equal ones give plain shuffled batches.
    """

    def __init__(self, lengths: np.ndarray | TokenLengths, batch_size: int, seed: int) -> None:
        super().__init__(RandomSampler(range(max(1, len(lengths)))), batch_size, drop_last=True)
        # accelerate, which gives each process its part of a batch, tells the epoch to the sampler below this one.
        self.sampler.set_epoch = self.set_epoch  # type: ignore[union-attr]
        self.lengths, self.batch_size, self.seed, self.epoch = lengths, batch_size, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; called by the trainer."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths) // self.batch_size

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng([self.seed, self.epoch])
        order = rng.permutation(len(self.lengths))
        pool = self.batch_size * BATCHES_IN_A_POOL
        for start in range(0, len(order), pool):
            rows = order[start : start + pool]
            n_batches = len(rows) // self.batch_size
            # The rows that fill no batch are left out before sorting, or they would always be the longest.
            rows = rows[: n_batches * self.batch_size]
            rows = rows[np.argsort(self.lengths[rows], kind="stable")]
            for batch in rng.permutation(n_batches):
                yield rows[batch * self.batch_size : (batch + 1) * self.batch_size].tolist()


def lengths_of(dataset: Dataset, model: nn.Module) -> np.ndarray | TokenLengths:
    """Return the lengths of the rows of a dataset: in tokens for a transformer, in words for other encoders."""
    columns, tokenizer = dataset.column_names, getattr(model, "tokenizer", None)
    strings = [name for name, feature in dataset.features.items() if feature.dtype == "string"]
    texts = ["sentence"] if "sentence" in columns else strings
    if isinstance(tokenizer, PreTrainedTokenizerBase):
        return TokenLengths(dataset, texts, tokenizer)
    if "words" in columns:
        return np.asarray(dataset.with_format("numpy")["words"][:])
    return np.array([[len(text.split()) for text in dataset[name]] for name in texts]).sum(axis=0)


class TrainingError(LikewiseError):
    """Raised if a training cannot start or has diverged; the message names the step and the cure."""

    @classmethod
    def diverged(cls, what: str, value: float, step: int) -> Self:
        """Return the error for a value that should be finite."""
        return cls(
            f"training diverged: {what} is {value} at step {step}. Nothing was saved. Lower learning_rate, lengthen "
            "warmup_ratio, or take precision fp32"
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


def newest_checkpoint(folder: Path) -> tuple[Path | None, int]:
    """Return the newest intact checkpoint with its step; (None, 0) if there is none.

    One that was cut by a kill or has changed since is removed, and so is one whose best checkpoint is gone.
    """
    steps = {int(path.name.rpartition("-")[2]): path for path in folder.glob("checkpoint-*")}
    for step, path in sorted(steps.items(), reverse=True):
        if is_sealed(path) and _best_is_whole(path):
            return path, step
        shutil.rmtree(path)
    return None, 0


@contextmanager
def reading_checkpoint(checkpoint: str | None) -> Iterator[None]:
    """Raise a JobError for whatever goes wrong in a `with` block that loads a checkpoint's state.

    The checksums were right, so that a kill or a damaged disk is not the cause.
    """
    try:
        yield
    except (UnpicklingError, RuntimeError, KeyError, TypeError, ValueError, AttributeError, EOFError) as error:
        raise JobError(
            f"{checkpoint} does not hold the state of this training ({type(error).__name__}): it was made elsewhere "
            "or changed. Start again with --overwrite"
        ) from error


def _best_is_whole(checkpoint: Path) -> bool:
    """Return whether the best checkpoint, according to a checkpoint's state, is there and intact."""
    state = read_json(checkpoint / "trainer_state.json")
    if not state.get("best_model_checkpoint"):
        return True
    best = checkpoint.with_name(Path(state["best_model_checkpoint"]).name)
    if str(best) != state["best_model_checkpoint"]:  # the folder was moved
        write_json(checkpoint / "trainer_state.json", state | {"best_model_checkpoint": str(best)})
        seal(checkpoint)
    return best == checkpoint or is_sealed(best)


class TwoPassSAM(SAM):
    """SAM (Foret et al. 2021): `first_step` moves to the worst point within `rho`, `step` returns and updates.

    The trainer computes the gradients of the base optimizer's step in between.
    """

    def step(self, closure: object = None) -> None:  # type: ignore[override]
        """Return to the old weights, then take one step of the base optimizer."""
        self.second_step()


class _Steps(BaseTrainer):
    """The training steps of both trainers.

    Args:
        options: of the method: what `trainer_arguments` has no argument for is read from them.
        settings: arguments of sentence-transformers' trainer.
    """

    def __init__(self, options: TrainingOptions, **settings: Any) -> None:
        self.options = options
        self._rho = getattr(options, "sam_rho", 0.0)
        self._passes: list[tuple[Features, list[Tensor]]] = []
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
        """Run the model as it is saved: in float32, and between its weights at the start and the trained ones.

        Wortsman et al. 2022, "Robust fine-tuning of zero-shot models": such weights keep most of what was gained and
        lose less of what the base could do.
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
        """Log the loss and its parts, not rounded, and what it notes without minimising it (its `measures`)."""
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
        """Return AdamW, wrapped in SAM if asked for, or the optimizer that the trainer was given."""
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

        The second pass runs under the same dropout masks: both gradients are of one function, as in SAM's paper.
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
        with fast_dropout(self.model), pooled, in_chunks(self.model, getattr(self.options, "chunk", 0)):
            if self._rho:
                self._passes.append((dict(inputs), chance()))
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
        for inputs, before in self._passes:
            set_chance(before)
            super().training_step(model, inputs, num_items_in_batch)
        set_chance(after)
        # What is logged is the loss at the weights, not at the worst point near them.
        self.accum_loss_components = parts
        self._passes.clear()


class LikewiseTrainer(_Steps, SentenceTransformerTrainer):
    """The trainer of an encoder, with one vector per sentence."""


class PairTrainer(_Steps, CrossEncoderTrainer):
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
    return kind.training_args_class(
        output_dir=str(checkpoints),
        per_device_train_batch_size=options.batch_size,
        gradient_accumulation_steps=options.accumulation,
        learning_rate=options.learning_rate,
        # Epochs only bound the order of the data; the steps end the run.
        num_train_epochs=math.ceil(steps / steps_an_epoch),
        max_steps=steps,
        warmup_steps=int(getattr(options, "warmup_ratio", 0.0) * steps),
        lr_scheduler_type=getattr(options, "schedule", "linear"),
        weight_decay=options.weight_decay,
        max_grad_norm=options.max_grad_norm,
        bf16=use_bf16(options.precision),
        use_cpu=not torch.cuda.is_available() and not torch.backends.mps.is_available(),
        eval_strategy="steps" if selection.evaluator else "no",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,  # the older one is there for when the newer is damaged
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
