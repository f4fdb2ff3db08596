"""Sentence encoders from plain text, no labels needed.

    >>> import likewise
    >>> sorted(likewise.RECIPES)
    ['arccse', 'consert', 'ct', 'esimcse', 'gclsr', 'mask-distillation', 'simcse', 'sncse', 'tsdae']

`train`, `evaluate` and `load` are all that most people need; every trained model is a folder that
`SentenceTransformer(folder)` loads.
"""

from typing import TYPE_CHECKING

from likewise.lazy import lazy_names
from likewise.version import __version__

if TYPE_CHECKING:
    from likewise.evaluation import evaluate
    from likewise.inference import load
    from likewise.recipes import RECIPES
    from likewise.training import finetune, train

__all__ = ["RECIPES", "__version__", "evaluate", "finetune", "load", "train"]

# Imported when first used: `import likewise` and `likewise --help` do not wait for torch.
_HOMES = {
    "RECIPES": "likewise.recipes",
    "evaluate": "likewise.evaluation",
    "finetune": "likewise.training",
    "load": "likewise.inference",
    "train": "likewise.training",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
