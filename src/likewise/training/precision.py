"""The use of bfloat16: on processors that are fast in it, and never where a model is scored or saved."""

import torch

from likewise import processor
from likewise.recipes.options import TrainingPrecision
from likewise.runs.options import OptionError


def bf16_is_fast() -> bool:
    """Return whether the GPU or the processor has instructions for bfloat16 (AMX, AVX-512 BF16)."""
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return processor.has_bf16() and "bf16" not in processor.flags()  # that of ARM: not measured


def use_bf16(precision: TrainingPrecision) -> bool:
    """Return whether a run uses bfloat16."""
    if precision == "bf16" and torch.cuda.is_available() and not torch.cuda.is_bf16_supported():
        raise OptionError("this GPU has no bfloat16: use --precision fp32")
    return precision == "bf16" or (precision == "auto" and bf16_is_fast())
