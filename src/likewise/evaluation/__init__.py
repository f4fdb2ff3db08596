"""Evaluation: tasks, typed results, and evaluators that select a checkpoint."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
