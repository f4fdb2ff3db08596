"""Suppression of transformers' output that the user cannot act on."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def only_errors() -> Iterator[None]:
    """Let transformers log errors only in a `with` block, and restore its level."""
    with _verbosity(lambda before: logging.ERROR):
        yield


@contextmanager
def lacking_weights() -> Iterator[list[str]]:
    """Provide the names of the weights that a model lacks, instead of transformers' report on them.

    A pooler's do not count: transformers' BERT has one that no sentence vector goes through.
    """
    lacking: list[str] = []

    def tells(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if "LOAD REPORT" not in text:
            return True
        names = [line.partition("|")[0].strip() for line in text.splitlines() if "| MISSING" in line]
        lacking.extend(name for name in names if "pooler." not in name)
        return False

    disabled = logging.root.manager.disable
    logging.disable(logging.NOTSET)  # or the report is not made
    try:
        with _verbosity(lambda before: min(before, logging.WARNING)), _filtered("transformers.modeling_utils", tells):
            yield lacking
    finally:
        logging.disable(disabled)


@contextmanager
def no_warning_of_times() -> Iterator[None]:
    """Hide the warning that transformers orders checkpoints by number and not by time, which is as good."""
    with _filtered("transformers.trainer_utils", lambda record: "mtime may not be reliable" not in record.getMessage()):
        yield


@contextmanager
def no_warning_of_old_names() -> Iterator[None]:
    """Hide the warnings that a property is deprecated: a tracer reads all that there are."""
    with _filtered("sentence_transformers.base.model", lambda record: "deprecated" not in record.getMessage()):
        yield


@contextmanager
def _verbosity(level: Callable[[int], int]) -> Iterator[None]:
    """Set the level of transformers in a `with` block, by the one that it has."""
    from transformers.utils import logging as verbosity

    before = verbosity.get_verbosity()
    verbosity.set_verbosity(level(before))
    try:
        yield
    finally:
        verbosity.set_verbosity(before)


@contextmanager
def _filtered(name: str, predicate: Callable[[logging.LogRecord], bool]) -> Iterator[None]:
    logger = logging.getLogger(name)
    logger.addFilter(predicate)
    try:
        yield
    finally:
        logger.removeFilter(predicate)


@contextmanager
def no_bar() -> Iterator[None]:
    """Hide the progress bars of transformers (over the weights) and of datasets in a `with` block."""
    from transformers.utils import logging

    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    datasets: Any = sys.modules.get("datasets")  # not imported for this alone
    silenced = datasets is not None and not datasets.are_progress_bars_disabled()
    if silenced:
        datasets.disable_progress_bars()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()
        if silenced:
            datasets.enable_progress_bars()
