"""The model's own modules under torch, without the layers of `SentenceTransformer.encode` around them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from likewise.encoder.pooled_token import only_pooled_token
from likewise.inference.engines.engine import CPU_BUDGET, Call, Engine

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DEVICE_BUDGET = 32_768
"""Cells of a batch on an accelerator, where small batches leave it idle."""


class TorchEngine(Engine):
    """Runs any model, on any device; bf16 is autocast."""

    name = "torch"

    def __init__(self, model: SentenceTransformer, precision: Literal["fp32", "bf16"] = "fp32") -> None:
        self.model = model
        self.precision = precision
        self.budget = CPU_BUDGET if model.device.type == "cpu" else DEVICE_BUDGET

    def open(self, workers: int) -> Call:
        """See `Engine.open`; who calls sets the threads (see `Runner`)."""
        model, device, bf16 = self.model, self.model.device, self.precision == "bf16"

        def call(ids: np.ndarray, mask: np.ndarray) -> Tensor:
            # Both are of the calling thread only, so they are entered in each call.
            cast: AbstractContextManager[Any] = (
                torch.autocast(device.type, dtype=torch.bfloat16) if bf16 else nullcontext()
            )
            with torch.inference_mode(), cast, only_pooled_token(model):
                features = {
                    "input_ids": torch.from_numpy(ids).to(device, non_blocking=True),
                    "attention_mask": torch.from_numpy(mask).to(device, non_blocking=True),
                }
                found: Tensor = model(features)["sentence_embedding"]
                return found

        return call
