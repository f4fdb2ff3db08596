"""Encoding with a trained model: load it, encode a file, compare sentences, export it.

The names are loaded on first use, so that `import likewise.inference` does not import torch.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
