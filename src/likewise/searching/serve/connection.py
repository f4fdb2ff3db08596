"""The connections of a service, which are closed if the client is too slow or sends too much."""

from __future__ import annotations

import asyncio
from collections import Counter
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from likewise.searching.serve.requests import RequestError
from likewise.searching.serve.serve_options import ServeOptions

_THROWN_AWAY, _LINGER = 1 << 20, 1.0
"""Bytes, and seconds, for which a refused client may go on to send, so that it gets to read why."""
_READ = 1 << 16
"""The least bytes of an answer that a client reads within the timeout."""


class Connection(HttpToolsProtocol):
    """A connection with limits on the head, its time, trailers and unread answers, which httptools and uvicorn lack.

    - The head of a request arrives within `header_timeout`; clients that send half of a request each would otherwise
      hold all connections that a process may have.
    - Consecutive bytes outside of a body, such as a head, trailers or the extensions of a chunk, are limited to
    `max_head`. - Data after an answer, for example after an error on the size of a body, is read and discarded for
    `body_timeout`, because most clients only read the answer after they have sent everything, and would otherwise find
    the connection closed. - An answer is read within `timeout`, or at least 64 KiB of it. - A client address has up to
    `connections`.

    Args:
        limits: Limits of the service.
        opened: Number of connections by client address, shared by all connections of the service.
    """

    def __init__(self, limits: ServeOptions, opened: Counter[str], **rest: Any) -> None:
        super().__init__(**rest)
        self._limits, self._opened = limits, opened
        self._late: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._whole, self._in_head, self._refused = True, False, False
        self._beside = 0  # bytes since the last one of a body

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._opened[self._address] += 1
        if self._opened[self._address] > self._limits.connections:
            most = f"this address has more than {self._limits.connections:,} connections: use fewer, or reuse them"
            self._refuse(RequestError(most, 503, retry_after="1"))
        else:
            self._wait(self._limits.header_timeout)

    def data_received(self, data: bytes) -> None:
        """Read the received data, and refuse it if it is too large."""
        self._beside += len(data)
        if not self._refused:
            super().data_received(data)
            self._check_head(self._beside)
        elif self._beside > _THROWN_AWAY:
            self.transport.abort()

    def _check_head(self, size: int) -> None:
        if size > self._limits.max_head and not self._refused:
            self._refuse(RequestError(f"headers and trailers have more than {self._limits.max_head:,} bytes", 431))

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid requests."""
        self._refuse(RequestError("this is not a valid HTTP request"))

    def on_message_begin(self) -> None:
        """Begin to wait for the headers of a request, the first one or a later one."""
        super().on_message_begin()
        self._whole, self._in_head = False, True
        if self._late is None and not self._refused:
            self._wait(self._limits.header_timeout)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header, but ignore trailers."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End the waiting, and start the application."""
        self._in_head = False
        self._check_head(len(self.url) + sum(len(name) + len(value) for name, value in self.headers))
        if not self._refused:
            self._stop_waiting()
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._beside = 0
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End the waiting for the rest of a body."""
        self._whole, self._beside = True, 0
        if not self._refused:
            self._stop_waiting()
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Begin to wait for the rest of a body, if there is any, and for the client to read the answer."""
        super().on_response_complete()
        self._wait_for_reader()
        if not self._whole and self._late is None:
            self._wait(self._limits.body_timeout)

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        self._wait_for_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the waiting: the client has left."""
        self._opened[self._address] -= 1
        if not self._opened[self._address]:
            del self._opened[self._address]
        self._stop_waiting()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)

    def _refuse(self, error: RequestError) -> None:
        """Answer with an error, unless an answer has begun, and close the connection when the client has had time."""
        self._refused, self._beside = True, 0
        if self.cycle is None or self.cycle.response_complete or not (self.cycle.response_started or self.pipeline):
            answer = error.response()
            head = [(b"connection", b"close"), *answer.raw_headers]
            lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}".encode()]
            lines += [b"%b: %b" % header for header in head]
            self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.flow.resume_reading()
        self._stop_waiting()
        self._late = self.loop.call_later(_LINGER, self.transport.abort)

    def _wait(self, seconds: float) -> None:
        self._late = self.loop.call_later(seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _wait_for_reader(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
        waits = self.transport.get_write_buffer_size()
        if waits:
            self._unread = self.loop.call_later(self._limits.timeout, self._check_reader, waits)

    def _check_reader(self, before: int) -> None:
        """Close the connection if less than 64 KiB of what waited for its client were read, and not all of it."""
        waits = self.transport.get_write_buffer_size()
        if waits > max(0, before - _READ):
            self.transport.abort()
        elif waits:
            self._unread = self.loop.call_later(self._limits.timeout, self._check_reader, waits)
