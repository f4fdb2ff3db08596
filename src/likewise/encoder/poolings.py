"""The poolings by their names, and the template of a prompt. Nothing here imports torch, for options and their help."""

import re
from typing import Literal

from likewise.errors import LikewiseError

PoolingMode = Literal["cls", "mean", "max"]
OwnOrMode = Literal["own", "cls", "mean", "max"]

TEMPLATE = 'The sentence of " X " means [MASK].'
"""SNCSE, equation 1."""

_PLACE, MASK = re.compile(r"(?<![A-Za-z0-9])X(?![A-Za-z0-9])"), "[MASK]"


def split_template(template: str) -> tuple[str, str]:
    """Split a template, which holds exactly one X as a separate word and exactly one [MASK], at its X.

    >>> split_template('"X" means [MASK].')
    ('"', '" means [MASK].')
    """
    parts = _PLACE.split(template)
    if len(parts) != 2 or template.count(MASK) != 1:
        raise LikewiseError(
            f"a template holds one X, where the sentence goes, and one {MASK}: {template!r} holds "
            f"{len(parts) - 1} and {template.count(MASK)}"
        )
    return parts[0], parts[1]
