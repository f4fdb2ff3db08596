"""Adaptation of an encoder to a text without labels: propose, score, choose, save."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
