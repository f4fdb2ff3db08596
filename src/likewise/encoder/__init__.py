"""Modules for sentence-transformers, and the construction of encoders from them.

The names that recipes need are loaded on first use, so that `import likewise.encoder` does not import torch.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
