"""Sentence encoders from plain text, no labels needed.

    >>> import likewise
    >>> sorted(likewise.RECIPES)
    ['arccse', 'gclsr', 'simcse', 'sncse']

`train`, `evaluate` and `load` are all that most people need; every trained model is a folder that
`SentenceTransformer(folder)` loads.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from likewise.version import __version__

if TYPE_CHECKING:
    from likewise.evaluation import evaluate
    from likewise.inference import load
    from likewise.recipes import RECIPES
    from likewise.training.run import train

__all__ = ["RECIPES", "__version__", "evaluate", "load", "train"]

# Imported when first used: `import likewise` and `likewise --help` do not wait for torch.
_HOMES = {
    "RECIPES": "likewise.recipes",
    "evaluate": "likewise.evaluation",
    "load": "likewise.inference",
    "train": "likewise.training.run",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
