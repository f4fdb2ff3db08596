"""Encoding with a trained model: load it, encode a file, compare two sentences.

The names below are loaded on first use, so that `import likewise.inference` does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.inference.encoding import encode, encode_file, similarity, undisturbed
    from likewise.inference.lines import LinesError
    from likewise.inference.loading import LoadError, load

__all__ = ["LinesError", "LoadError", "encode", "encode_file", "load", "similarity", "undisturbed"]

_HOME = {
    "LinesError": "lines",
    "LoadError": "loading",
    "load": "loading",
    "encode": "encoding",
    "encode_file": "encoding",
    "similarity": "encoding",
    "undisturbed": "encoding",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
