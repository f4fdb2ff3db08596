"""The papers' baselines that need no training loop: averages, whitening, a flow."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
