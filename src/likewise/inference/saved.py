"""The result of every job that ends with a model: its folder, its record, and the model itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from likewise.inference.loading import load


@dataclass(frozen=True)
class SavedModel:
    """A model that a job has saved.

    Attributes:
        path: the model's folder.
        record: the content of its likewise.json.
    """

    path: Path
    record: dict[str, Any]

    @cached_property
    def model(self) -> Any:
        """The saved model, loaded on first access."""
        return load(self.path)
