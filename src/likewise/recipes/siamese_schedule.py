"""SGD as the authors of GCLSR ran it: Nesterov momentum, warm-up, cosine decay, a separate rate for the predictor."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR


class WarmupCosine(LambdaLR):
    """A schedule of linear warm-up over `warmup` updates and cosine decay to 0 at `steps`.

    A group of the optimizer with the entry 'constant' set to True keeps its rate. The momentum is the first of
    `momenta` during the rise, the second after it.
    """

    def __init__(self, optimizer: SGD, steps: int, warmup: int, momenta: tuple[float, float]) -> None:
        self.steps, self.warmup, self.momenta = steps, warmup, momenta
        super().__init__(
            optimizer,
            [(lambda step: 1.0) if group.get("constant") else self.factor for group in optimizer.param_groups],
        )

    def factor(self, step: int) -> float:
        """Return the share of the peak rate at an update, counted from 0."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        return 0.5 * (1 + math.cos(math.pi * (step - self.warmup) / max(1, self.steps - self.warmup)))

    def step(self, epoch: int | None = None) -> None:
        """Set the rates and the momentum of the next update."""
        super().step(epoch)
        for group in self.optimizer.param_groups:
            group["momentum"] = self.momenta[self.last_epoch >= self.warmup]


def siamese_sgd(
    model: nn.Module,
    predictor: Iterable[nn.Parameter],
    *,
    rate: float,
    predictor_rate: float,
    weight_decay: float,
    steps: int,
    warmup: int,
    momenta: tuple[float, float],
) -> tuple[torch.optim.Optimizer, WarmupCosine]:
    """Return the optimiser of GCLSR, section 4.1, and its schedule.

    Args:
        model: all that is trained.
        predictor: the parameters of the predictor, which have the constant rate `predictor_rate`, unless that is 0.
        rate, weight_decay: peak rate and decay of all others.
        steps, warmup, momenta: see `WarmupCosine`.
    """
    own = {id(parameter) for parameter in predictor} if predictor_rate else set()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if id(p) not in own], "lr": rate, "constant": False},
        {"params": [p for p in trained if id(p) in own], "lr": predictor_rate, "constant": True},
    ]
    groups = [group for group in groups if group["params"]]
    optimizer = SGD(groups, lr=rate, momentum=momenta[0], nesterov=momenta[0] > 0, weight_decay=weight_decay)
    return optimizer, WarmupCosine(optimizer, steps, warmup, momenta)
