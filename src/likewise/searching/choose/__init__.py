"""The choice of a base and of a search for your own text, without labels.

The names are loaded on first use, so that `import likewise.searching.choose` imports neither torch nor LanceDB.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
