"""Optimizers and schedules that torch does not have, for the recipes that need them."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from likewise.runs.whole_files import Record


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


class RowAdam(Optimizer):
    """Adam (Kingma and Ba 2015); a row of a 'rows' group whose gradient is zero keeps its moments and its value.

    With ordinary moments a rare word would move long after the sentence that held it. torch's SparseAdam does the
    same for sparse gradients alone; here a table's gradient may be either, since processes average dense ones.

    Args:
        params: Parameters or groups, each with its own 'lr' or the given one; {'rows': True} marks a group of tables.
    """

    def __init__(self, params: Iterable[Tensor] | Iterable[Record], lr: float = 1e-3) -> None:
        super().__init__(params, {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-8, "rows": False})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the parameters."""
        for group in self.param_groups:
            first, second = group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state |= {"step": 0, "mean": torch.zeros_like(parameter), "square": torch.zeros_like(parameter)}
                state["step"] += 1
                gradient, rows = parameter.grad, slice(None)
                if gradient.is_sparse:
                    gradient = gradient.coalesce()
                    rows, gradient = gradient.indices()[0], gradient.values()
                elif group["rows"]:
                    rows = gradient.ne(0).any(dim=1).nonzero()[:, 0]
                    gradient = gradient[rows]
                mean = state["mean"][rows].lerp_(gradient, 1 - first)
                square = state["square"][rows].mul_(second).addcmul_(gradient, gradient, value=1 - second)
                state["mean"][rows], state["square"][rows] = mean, square
                rate = group["lr"] / (1 - first ** state["step"])
                parameter[rows] -= rate * mean / ((square / (1 - second ** state["step"])).sqrt() + group["eps"])
