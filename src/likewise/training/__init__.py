"""Training: a recipe on plain text, an objective on labeled rows; the only package that builds a trainer."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
