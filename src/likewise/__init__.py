"""Train sentence encoders on plain text without labels, and search your own text.

    >>> import likewise
    >>> sorted(likewise.RECIPES)
    ['arccse', 'gclsr', 'light', 'simcse', 'sncse']

Most users only need `train`, `evaluate` and `load`; every trained model is a folder that `SentenceTransformer(folder)`
loads. The first argument of every function is its data, and `base`, `out` and the options are keyword arguments. Every
error that a user can fix is a `LikewiseError`. Names are imported on first use.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
