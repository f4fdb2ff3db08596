"""The limits of a service."""

from __future__ import annotations

from likewise.errors import LikewiseError
from likewise.runs.options import Options, option


class ServingError(LikewiseError):
    """Raised if a service cannot be started; the message names the cure."""


class ServeOptions(Options):
    """The limits of a service: what a request may ask for, and how much may wait.

    >>> ServeOptions(queue=10).max_texts
    2048
    """

    queue: int = option(4096, "Most texts that may wait; further requests are answered with 429.", ge=1)
    searches: int = option(
        64, "Most searches that run or wait; further ones are answered with 429. Four on each core run at a time.", ge=1
    )
    wait: float = option(
        2.0, "Longest time that a text waits for others to share its batch, in milliseconds.", ge=0, le=1000
    )
    timeout: float = option(60.0, "Seconds after which a request is given up and answered with 504.", gt=0)
    header_timeout: float = option(
        10.0, "Seconds within which the headers of a request must arrive; otherwise the connection is closed.", gt=0
    )
    body_timeout: float = option(10.0, "Seconds within which the body of a request must arrive.", gt=0)
    max_body: int = option(8 << 20, "Most bytes in the body of a request.", ge=1024)
    max_texts: int = option(2048, "Most texts in a request.", ge=1)
    max_characters: int = option(32_768, "Most characters in a text; the model may read fewer.", ge=1)
