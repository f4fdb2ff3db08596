"""'Sentence Similarity Based on Contexts': sentences are similar if they fit the same contexts.

A pipeline of stages in a workspace: index, discriminator, generators, harvest, and the surrogate trained on it. The
names are loaded on first use, so that `import likewise.context` does not import torch.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
