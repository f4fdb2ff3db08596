"""Finding a module of an encoder by its class."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

_Part = TypeVar("_Part", bound=nn.Module)


def find_part(encoder: nn.Module, kind: type[_Part]) -> _Part | None:
    """The first module of an encoder that is of a class, None where it has none."""
    return next((part for part in encoder.children() if isinstance(part, kind)), None)
