"""The trainers: sentence-transformers' own, with batches by length, sharpness-aware steps, and a short last layer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformerTrainer
from sentence_transformers.base.trainer import BaseTrainer
from sentence_transformers.cross_encoder import CrossEncoderTrainer
from torch import Tensor, nn

from likewise.encoder.pooled_token import only_pooled_token
from likewise.training.batching import LengthBatchSampler
from likewise.training.precision import as_saved
from likewise.training.sam import TwoPassSAM


class _Steps(BaseTrainer):
    """What a trainer of any kind of model does otherwise here.

    Args:
        lengths: words of each training row.
        by_length: batches of near-equal length.
        sam_rho: radius of sharpness-aware minimisation; 0 is plain AdamW.
        sam_every: one update of so many is sharpness-aware, the first one among them; the others are plain.
        settings: those of sentence-transformers' trainer.
    """

    def __init__(
        self,
        *,
        lengths: Sequence[int] | np.ndarray,
        by_length: bool,
        sam_rho: float,
        sam_every: int = 1,
        **settings: Any,
    ) -> None:
        self.lengths = lengths
        self.by_length = by_length
        self.sam_rho = sam_rho
        self.sam_every = sam_every
        self._passes: list[tuple[dict[str, Any], Tensor, list[Tensor]]] = []
        super().__init__(**settings)

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """None: the run folder's own record says more, and takes no time."""

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Logs, beside the loss, what the loss measures without minimising it (its `measures`, where it has them)."""
        if "loss" in logs and hasattr(self.loss, "measures"):
            logs |= self.loss.measures()
        super().log(logs, *args, **kwargs)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        # As the base class does, less a model card for every checkpoint.
        folder = Path(output_dir or self.args.output_dir or ".")
        self.model.save_pretrained(str(folder), create_model_card=False)
        torch.save(self.args, folder / "training_args.bin")

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """The scores of the model as it would be saved now, also where it is trained in bfloat16."""
        with as_saved(self.model):
            found: dict[str, float] = super().evaluate(*args, **kwargs)
        return found

    def get_batch_sampler(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
    ) -> LengthBatchSampler:
        """Batches by length (see `LengthBatchSampler`)."""
        return LengthBatchSampler(self.lengths, batch_size, seed, self.by_length)

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """AdamW, wrapped in SAM if asked for, or the one that the trainer was given."""
        optimizer: torch.optim.Optimizer = super().create_optimizer(model)
        if self.sam_rho and not isinstance(optimizer, TwoPassSAM):
            # One group a rate and decay, as the trainer made them; AdamW's state starts empty either way.
            optimizer = self.optimizer = TwoPassSAM(
                optimizer.param_groups,
                torch.optim.AdamW,
                rho=self.sam_rho,
                lr=self.args.learning_rate,
                betas=(self.args.adam_beta1, self.args.adam_beta2),
                eps=self.args.adam_epsilon,
            )
        return optimizer

    def training_step(
        self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """One forward and backward pass; with SAM, the passes of an update once more at the perturbed weights.

        The second pass runs under the same dropout masks: both gradients are of one function, as in SAM's paper.
        """
        # torch's DataParallel copies a module with what stands in for its layer, which would be the first device's.
        with nullcontext() if self.args.n_gpu > 1 else only_pooled_token(self.model):
            if not self.sam_rho or self.state.global_step % self.sam_every:
                return super().training_step(model, inputs, num_items_in_batch)
            self._passes.append((dict(inputs), torch.get_rng_state(), _cuda_rng_states()))
            loss = super().training_step(model, inputs, num_items_in_batch)
            if self.accelerator.sync_gradients:
                self._gradients_at_worst_point(model, num_items_in_batch)
            return loss

    def _gradients_at_worst_point(self, model: nn.Module, num_items_in_batch: Tensor | int | None) -> None:
        sam: Any = getattr(self.optimizer, "optimizer", self.optimizer)  # accelerate wraps it
        sam.first_step(zero_grad=True)
        after = torch.get_rng_state(), _cuda_rng_states()
        # Cloned: the trainer counts the steps in place.
        parts = {
            kind: {name: value.clone() for name, value in sums.items()}
            for kind, sums in self.accum_loss_components.items()
        }
        for inputs, cpu, cuda in self._passes:
            torch.set_rng_state(cpu)
            _set_cuda_rng_states(cuda)
            super().training_step(model, inputs, num_items_in_batch)
        torch.set_rng_state(after[0])
        _set_cuda_rng_states(after[1])
        # What is logged is the loss at the weights, not at the worst point near them.
        self.accum_loss_components = parts
        self._passes.clear()


class LikewiseTrainer(_Steps, SentenceTransformerTrainer):
    """Trains an encoder: one vector a sentence."""


class PairTrainer(_Steps, CrossEncoderTrainer):
    """Trains a cross-encoder: one number a pair of sentences."""


def _cuda_rng_states() -> list[Tensor]:
    return torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []


def _set_cuda_rng_states(states: list[Tensor]) -> None:
    if states:
        torch.cuda.set_rng_state_all(states)
