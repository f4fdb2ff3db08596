"""What is told of another library's error."""

from __future__ import annotations


def first_line(error: BaseException) -> str:
    """The first line of its message, or its class where it has none.

    >>> first_line(OSError("no such file\\nand much more")), first_line(ValueError())
    ('no such file', 'ValueError')
    """
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
