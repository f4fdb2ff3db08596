"""The connections of a service: one whose client is too slow is closed."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Connection(HttpToolsProtocol):
    """A connection that is closed if headers do not arrive in time, or the rest of a body after the answer.

    Without that, clients that send half of a request each would hold all connections that a process may have. What
    follows after an answer, as after one that a body is too large, is read and thrown away for a while: most clients
    read the answer only when they have sent all, and would otherwise find the connection closed.

    Args:
        headers: seconds for the headers, from the first byte of a request, or from the start of the connection.
        body: seconds for what is left of a body after the answer.
    """

    def __init__(self, headers: float, body: float, **rest: Any) -> None:
        super().__init__(**rest)
        self._headers, self._body = headers, body
        self._late: asyncio.TimerHandle | None = None
        self._whole = True

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait(self._headers)

    def on_message_begin(self) -> None:
        """Begin to wait for the headers of a request, the first one or a later one."""
        super().on_message_begin()
        self._whole = False
        if self._late is None:
            self._wait(self._headers)

    def on_headers_complete(self) -> None:
        """End the waiting."""
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the waiting for the rest of a body."""
        self._whole = True
        self._stop_waiting()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Begin to wait for the rest of a body, if there is any."""
        super().on_response_complete()
        if not self._whole and self._late is None:
            self._wait(self._body)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the waiting: the client has left."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self, seconds: float) -> None:
        self._late = self.loop.call_later(seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
