"""Duplicates of your own text, by the vectors of an encoder and by words.

The names are loaded on first use: `import likewise.searching.duplicates` imports neither torch nor scikit-learn.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
