"""Keeping what transformers prints off the screen where it tells nothing that the user could act on."""

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


@contextmanager
def no_bar() -> Iterator[None]:
    """Inside, transformers shows no bar over the weights, which is done before it is seen."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
