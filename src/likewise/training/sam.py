"""Sharpness-aware minimisation inside a trainer that calls `step()` without a closure."""

from __future__ import annotations

from typing import Any

from pytorch_optimizer import SAM


class TwoPassSAM(SAM):
    """SAM (Foret et al. 2021) whose two halves are called one by one.

    `first_step` moves the weights to the worst point within `rho`; the trainer then computes the gradients there;
    `step` returns to the old weights and lets the base optimizer step with them. `step` alone is the base optimizer's.
    """

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Back to the old weights, then one step of the base optimizer."""
        self.second_step()
