"""The saved states of a hand-written training loop: two are kept, and a damaged one is skipped."""

from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from likewise.runs.parts import Parts

_KEPT = 2


class SavedStates:
    """The states from which a loop resumes with bit-equal results: tensors and plain values by step."""

    def __init__(self, folder: Path) -> None:
        self._parts = Parts(folder)

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write the state after a step; the two newest are kept."""
        import torch

        with self._parts.new(f"{step:09d}.pt") as path:
            torch.save(state, path)
        self._parts.drop(*sorted(self._parts.facts)[:-_KEPT])

    def load(self) -> tuple[int, dict[str, Any]] | None:
        """Return step and state of the newest intact one; None if there is none."""
        import torch

        for name in sorted(self._parts.facts, reverse=True):
            try:
                return int(Path(name).stem), torch.load(self._parts.path(name), weights_only=True)
            except (UnpicklingError, RuntimeError, ValueError):  # not of this class: it is never unpickled further
                continue
        return None


def chance() -> list[Any]:
    """Return the random states of torch: of the processor, and of each GPU."""
    import torch

    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [])]


def set_chance(states: list[Any]) -> None:
    """Restore the random states that `chance` returned; those of GPUs only where there are some."""
    import torch

    torch.set_rng_state(states[0])
    if torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states[1:])
