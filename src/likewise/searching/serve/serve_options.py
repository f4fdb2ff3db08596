"""The limits of a service."""

from __future__ import annotations

from likewise.errors import LikewiseError
from likewise.runs.options import Options, option


class ServingError(LikewiseError):
    """Raised if a service cannot be started; the message names the cure."""


class ServeOptions(Options):
    """The limits of a service on requests and queues.

    >>> ServeOptions(queue=10).max_texts
    2048
    """

    queue: int = option(4096, "Maximum number of texts that wait; further requests are answered with 429.", ge=1)
    searches: int = option(
        64,
        "Maximum number of searches that run or wait; further searches are answered with 429. Four run at a time per "
        "core.",
        ge=1,
    )
    wait: float = option(
        2.0, "Maximum time that a text waits for others to share its batch, in milliseconds.", ge=0, le=1000
    )
    timeout: float = option(
        60.0,
        "Number of seconds after which a request is answered with 504, and a client that does not read its answer is "
        "disconnected.",
        gt=0,
    )
    header_timeout: float = option(
        10.0,
        "Number of seconds within which the headers of a request must arrive; otherwise the connection is closed.",
        gt=0,
    )
    body_timeout: float = option(10.0, "Number of seconds within which the body of a request must arrive.", gt=0)
    connections: int = option(
        512, "Maximum number of connections per client address; further connections are answered with 503.", ge=1
    )
    max_head: int = option(
        1 << 16,
        "Maximum size of the headers of a request, and of its trailers, in bytes; a larger request is answered with "
        "431.",
        ge=1024,
    )
    max_body: int = option(8 << 20, "Maximum size of the body of a request, in bytes.", ge=1024)
    max_texts: int = option(2048, "Maximum number of texts in a request.", ge=1)
    max_characters: int = option(32_768, "Maximum number of characters in a text; the model may read fewer.", ge=1)
