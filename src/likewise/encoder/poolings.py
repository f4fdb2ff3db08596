"""The poolings by their names, and the templates of prompts. Nothing here imports torch, for options and their help."""

import re
from typing import Literal

from likewise.errors import LikewiseError

PoolingMode = Literal["cls", "mean", "max"]
OwnOrMode = Literal["own", "cls", "mean", "max"]

TEMPLATE = 'The sentence of " X " means [MASK].'
"""SNCSE, equation 1."""
LAST_TEMPLATE = 'This sentence: "X" means in one word:'
"""PromptEOL (Jiang et al. 2023), for a base that reads from left to right: its last token is read."""

_PLACE, MASK = re.compile(r"(?<![A-Za-z0-9])X(?![A-Za-z0-9])"), "[MASK]"


def split_template(template: str) -> tuple[str, str]:
    """Split a template at its X; it holds exactly one X as a separate word, and at most one [MASK].

    >>> split_template('"X" means [MASK].')
    ('"', '" means [MASK].')
    """
    parts = _PLACE.split(template)
    if len(parts) != 2 or template.count(MASK) > 1:
        raise LikewiseError(
            f"a template must contain exactly one X (the sentence) and at most one {MASK}, but {template!r} has "
            f"{len(parts) - 1} and {template.count(MASK)}"
        )
    return parts[0], parts[1]
