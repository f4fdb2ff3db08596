"""Batch norm over the rows of all processes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from likewise.runs import processes


class BatchNorm(nn.BatchNorm1d):
    """Batch norm whose mean and variance are those of the batch of all processes; alone, torch's own.

    torch's `SyncBatchNorm` does the same on GPUs only. The processes have equally many rows.
    """

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise rows (B, D)."""
        if not self.training or processes.count() == 1:
            return super().forward(rows)
        mean = processes.mean_of_processes(rows.mean(dim=0))  # (D,)
        variance = processes.mean_of_processes((rows - mean).square().mean(dim=0))  # (D,)
        with torch.no_grad():
            number, momentum = len(rows) * processes.count(), self.momentum or 0.0
            self.num_batches_tracked.add_(1)  # type: ignore[union-attr]
            self.running_mean.lerp_(mean, momentum)  # type: ignore[union-attr]
            self.running_var.lerp_(variance * number / (number - 1), momentum)  # type: ignore[union-attr]
        return (rows - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias
