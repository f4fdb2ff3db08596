"""Search in one's own text: an index of passages on disk, by meaning and by words.

The names are loaded on first use, so that `import likewise.searching` imports neither torch nor LanceDB.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
