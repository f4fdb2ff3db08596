"""Train sentence encoders on plain text without labels, and search your own text.

    >>> import likewise
    >>> sorted(likewise.RECIPES)
    ['arccse', 'gclsr', 'light', 'simcse', 'sncse']

`train`, `evaluate` and `load` are all that most people need; every trained model is a folder that
`SentenceTransformer(folder)` loads. Every function takes its data first and `base=`, `out=` and options by name; every
error that a user can mend is a `LikewiseError`. Names are imported when they are first used.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
