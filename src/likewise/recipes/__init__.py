"""The recipes and their parts, except for encoders (`likewise.encoder`) and losses (`likewise.losses`).

A recipe of another package imports from here what this library's recipes use. Names are loaded on first use. Where the
values of a recipe come from, and what differs from its paper: docs/systems.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
