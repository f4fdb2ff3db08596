"""Adam that touches the rows of a table which had a gradient, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


class RowAdam(Optimizer):
    """Adam (Kingma and Ba 2015); a row of a 'rows' group whose gradient is zero keeps its moments and its value.

    With ordinary moments a rare word would move long after the sentence that held it. torch's SparseAdam does the
    same for sparse gradients alone; here a table's gradient may be either, since processes average dense ones.

    Args:
        params: parameters or groups, each with its own 'lr' or the given one; {'rows': True} marks a group of tables.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "rows": False})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
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
