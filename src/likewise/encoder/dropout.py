"""Turning dropout off for a part of a training step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from likewise.encoder.head import TrainingOnly


@contextmanager
def dropout_off(model: nn.Module) -> Iterator[None]:
    """Inside, `model` runs without dropout, with gradients, and with its training head still in place.

    Every module's mode is put back as it was, also after an error. Attention layers read their own `training`
    flag, so setting the dropout modules alone would not do.
    """
    modes = {module: module.training for module in model.modules()}
    try:
        for module in model.modules():
            if not isinstance(module, TrainingOnly):
                # Not .eval(): that would also reach the head's inside.
                module.training = False
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode
