"""Negatives from the other processes of a distributed run."""

from __future__ import annotations

import torch
from sentence_transformers.util import all_gather_with_grad
from torch import Tensor


def gather_positives(positives: Tensor) -> tuple[Tensor, int]:
    """Return the positives of all processes, (B x processes, D) with gradients, and the row where this one's begin.

    In a run of one process: `positives` as they are, and 0.
    """
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    if not distributed or torch.distributed.get_world_size() == 1:
        return positives, 0
    return all_gather_with_grad(positives), torch.distributed.get_rank() * len(positives)
