"""Keeping transformers' warnings off the screen where they tell nothing that the user could act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def only_errors() -> Iterator[None]:
    """Inside, transformers logs errors alone; its level is given back."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)
