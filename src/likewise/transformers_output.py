"""Suppression of output of transformers that the user cannot act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def only_errors() -> Iterator[None]:
    """Let transformers log errors only in a `with` block, and restore its level."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


@contextmanager
def no_bar() -> Iterator[None]:
    """Hide the progress bar of transformers over the weights in a `with` block."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
