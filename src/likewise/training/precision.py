"""Where bfloat16 is worth it."""

from __future__ import annotations

import platform

import torch

from likewise.recipes.options import Precision
from likewise.runs.options import OptionError


def bf16_is_fast() -> bool:
    """True on a GPU with bfloat16, or on a processor with instructions made for it (AMX, AVX-512 BF16, ARM).

    Elsewhere bfloat16 is emulated: on a processor with AVX2 alone a product takes ten times as long as in float32.
    """
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if platform.machine().lower() in ("arm64", "aarch64"):
        return False  # not measured
    flags = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, flag, bool)()) for flag in flags)


def use_bf16(precision: Precision) -> bool:
    """Whether a run takes bfloat16.

    Raises:
        OptionError: bf16 is asked for on a GPU that has none.
    """
    if precision == "bf16" and torch.cuda.is_available() and not torch.cuda.is_bf16_supported():
        raise OptionError("this GPU has no bfloat16: use --precision fp32")
    return precision == "bf16" or (precision == "auto" and bf16_is_fast())
