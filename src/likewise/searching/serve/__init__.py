"""Serving of models and indexes over HTTP, with a page to try them.

The names are loaded on first use, so that `import likewise.searching.serve` imports neither torch nor FastAPI.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
