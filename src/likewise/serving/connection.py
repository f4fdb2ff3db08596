"""The connections of a service: one whose client is too slow is closed."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Connection(HttpToolsProtocol):
    """A connection that is closed if the headers of a request do not arrive in time.

    Without that, clients that send half of a request each would hold all connections that a process may have.

    Args:
        seconds: for the headers, from the first byte of a request, or from the start of the connection.
    """

    def __init__(self, seconds: float, **rest: Any) -> None:
        super().__init__(**rest)
        self._seconds = seconds
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def on_message_begin(self) -> None:
        """Begin to wait for the headers of a request, the first one or a later one."""
        super().on_message_begin()
        if self._late is None:
            self._wait()

    def on_headers_complete(self) -> None:
        """End the waiting."""
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the waiting: the client has left."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._late = self.loop.call_later(self._seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
