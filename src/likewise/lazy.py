"""Names of a package that are imported when they are first used, so that importing the package is fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names live in other modules.

    No home may have the name of what lives in it: once imported, the module itself would stand in its place.

    Args:
        package: the package's `__name__`.
        homes: public name to module, '.module' for one inside the package.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name], package), name)

    return get, lambda: sorted(homes)
