"""The outer layer of the service: limits of a body, keys, and the count of requests (pure ASGI, so it is cheap)."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import Sequence
from hashlib import sha256
from ipaddress import ip_address

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from likewise.runs.whole_files import Record
from likewise.searching.serve.requests import RequestError
from likewise.searching.serve.serve_options import ServeOptions, ServingError
from likewise.version import __version__

OPEN = ("/health", "/ready", "/", "/page.css", "/page.js", "/favicon.ico", "/docs", "/openapi.json")
"""Paths that need no key: they tell nothing of models or texts. A browser opens the pages without one."""
_OPEN_FILES = "/static-offline-docs/"
"""The files of /docs."""
_SLICE = 1 << 16
"""The bytes of a body that are looked through before other requests have their turn: a millisecond or two."""
_SIGN = 12
"""The most bytes that a character has in JSON: two escapes."""
_DIGITS = 20  # of a Content-Length; Python refuses to read one of more than 4,300
_HOST = re.compile(r"\[([0-9a-f:.]+)\](?::\d+)?|([^:\[\]/?#@\\]+)(?::\d+)?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s*]+")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class ServiceMetrics:
    """The measurements for Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        options: Record = {"registry": self.registry}
        ProcessCollector(registry=self.registry)  # memory, file descriptors and processor time
        Info("likewise", "The release of the service.", **options).info({"version": __version__})
        self.requests = Counter("likewise_requests", "Requests by path and status.", ["path", "status"], **options)
        self.seconds = Histogram(
            "likewise_request_seconds", "Seconds of a request.", ["path"], buckets=_SECONDS, **options
        )
        self.texts = Counter("likewise_texts", "Texts encoded.", ["model"], **options)
        self.tokens = Counter("likewise_tokens", "Tokens encoded.", ["model"], **options)
        self.batches = Histogram("likewise_batch_texts", "Texts of a batch.", ["model"], buckets=_SIZES, **options)
        self.waiting = Gauge("likewise_waiting_texts", "Texts that wait for a batch.", ["model"], **options)


class Guard:
    """An ASGI application around another one.

    Args:
        app: Application behind the guard.
        options: Limits.
        keys: Accepted keys; without keys, every request is accepted.
        metrics: Metrics of the requests.
        paths: Paths that are counted by name; all others count as one.
        hosts: Names by which requests may address the service, in addition to localhost and IP addresses; "*" for every
            name.
    """

    def __init__(
        self,
        app: ASGIApp,
        options: ServeOptions,
        keys: Sequence[str],
        metrics: ServiceMetrics,
        paths: Sequence[str],
        hosts: Sequence[str] = (),
    ) -> None:
        self.app, self.options, self.metrics, self.paths = app, options, metrics, frozenset(paths)
        self._hosts = {"localhost", *(host.lower() for host in hosts)}
        self._keys = [sha256(key.encode()).digest() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status = time.monotonic(), 500
        if is_head := scope["method"] == "HEAD":  # as monitors and load balancers ask
            scope = {**scope, "method": "GET"}
        if scope["path"].endswith("/"):  # answered as without: a redirect would repeat the text, perhaps in the open
            scope = {**scope, "path": scope["path"].rstrip("/") or "/"}

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send({**message, "body": b""} if is_head and "body" in message else message)

        try:
            self._check_host(scope)
            self._check_key(scope)
            await self.app(scope, await self._with_body(scope, receive), sending)
        except RequestError as error:
            await error.response()(scope, receive, sending)
        finally:
            path = scope["path"] if scope["path"] in self.paths else "other"
            self.metrics.requests.labels(path, str(status)).inc()
            self.metrics.seconds.labels(path).observe(time.monotonic() - begun)

    def _check_host(self, scope: Scope) -> None:
        """Refuse a name that is not the service's: a page of the web may have its own name lead here."""
        for host in (value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"):
            match = _HOST.fullmatch(host)
            if match is None or not (
                match[2] in self._hosts or "*" in self._hosts or _is_address(match[1] or match[2])
            ):
                message = f"the host {host[:100]!r} does not belong to this service"
                raise RequestError(f"{message}: start it with --allowed-host NAME", 421)

    def _check_key(self, scope: Scope) -> None:
        path = scope["path"]
        if not self._keys or path in OPEN or path.startswith(_OPEN_FILES) or scope["method"] == "OPTIONS":
            return
        scheme, _, key = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
        digest = sha256(key.strip() if scheme.lower() == b"bearer" else b"").digest()
        # Each is compared, in a time that tells nothing of where they differ.
        if not sum(hmac.compare_digest(digest, known) for known in self._keys):
            message = "this service requires an API key: send the header 'Authorization: Bearer KEY'"
            raise RequestError(message, 401, code="invalid_api_key", www_authenticate="Bearer")

    async def _with_body(self, scope: Scope, receive: Receive) -> Receive:
        """Read the body, and return what gives it to the application, and tells it later if the client has left."""
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return receive
        most, body, more = self.options.max_body, bytearray(), True
        values = _Values(8 * self.options.max_texts + 64, _SIGN * self.options.max_characters)
        headers = dict(scope["headers"])
        # A page of the web may send a form, or what it does not name, to this machine unasked, but no JSON.
        kind = headers.get(b"content-type", b"").lower()
        if kind and b"json" not in kind:
            raise _not_json()
        packed = headers.get(b"content-encoding", b"").decode("latin-1").lower()
        if packed not in ("", "identity"):
            raise RequestError(
                f"a body in Content-Encoding {packed[:20]!r} is not supported: send it uncompressed", 415
            )
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or len(declared) > _DIGITS:
            raise RequestError(f"Content-Length is not a number of up to {_DIGITS} digits: {declared[:100]!r}")
        if int(declared) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(self.options.body_timeout):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestError("the client has left")
                    piece, more = message.get("body", b""), message.get("more_body", False)
                    if len(body) + len(piece) > most:
                        raise _too_large(most)
                    for start in range(0, len(piece), _SLICE):
                        values.count(piece[start : start + _SLICE])
                        await asyncio.sleep(0)
                    body += piece
        except TimeoutError:
            late = f"the body did not arrive within {self.options.body_timeout:g} s"
            raise RequestError(late, 408, connection="close") from None
        if not kind:
            raise _not_json()
        messages: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        return replay


def _too_large(most: int) -> RequestError:
    """Return a new error: in a variable of the function that raises it, it would keep the body until a collection."""
    return RequestError(f"the body is larger than {most:,} bytes: send fewer texts", 413)


def _not_json() -> RequestError:
    return RequestError("the body is not sent as JSON: send the header 'Content-Type: application/json'", 415)


class _Values:
    """Counts the values of JSON while it arrives, and their bytes: what is too much is refused before it is a value.

    Two bytes can be a dictionary, and a text, a name or a number of megabytes would hold up all others for as long as
    it is read and refused.

    Args:
        most: Maximum number of values in a request.
        longest: Maximum number of bytes of a text or number.
    """

    def __init__(self, most: int, longest: int) -> None:
        self.most, self.longest, self._signs, self._quotes, self._bytes = most, longest, 0, 0, 0
        self._backslash = b""  # the first half of an escape whose second half is in the next piece

    def count(self, piece: bytes) -> None:
        """Count the values of the next piece.

        Raises:
            RequestError: If there are too many values, or the body is not valid JSON in UTF-8.
        """
        if b"\0" in piece:
            raise RequestError("the body contains a NUL character: send JSON in UTF-8")
        piece = self._backslash + piece
        self._backslash = piece[-1:] if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""
        bare = piece.removesuffix(self._backslash).replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = bare.split(b'"')
        self._signs += sum(part.count(char) for part in parts[self._quotes % 2 :: 2] for char in (b",", b"[", b"{"))
        self._quotes += len(parts) - 1
        lengths = [self._bytes + len(parts[0]), *map(len, parts[1:])]
        self._bytes = lengths[-1]
        if max(lengths) > self.longest:
            raise RequestError(f"a text or a number of the body has more than {self.longest:,} bytes: split it")
        # A text has two quotes, and so has a key.
        if self._signs > self.most or self._quotes > 4 * self.most:
            many = f"the body contains more than {self.most:,} values: send several requests with fewer texts"
            raise RequestError(many)


def checked_origins(given: Sequence[str]) -> list[str]:
    """Return origins as browsers write them.

    Raises:
        ServingError: If one is written in a form that no browser sends.

    >>> checked_origins(["https://Example.org/"])
    ['https://example.org']
    """
    origins = [origin.lower().rstrip("/") for origin in given]
    if wrong := [origin for origin in origins if origin != "*" and not _ORIGIN.fullmatch(origin)]:
        raise ServingError(f"--cors {wrong[0]}: give an origin, such as https://example.org or http://localhost:3000")
    return origins


def check_hosts(names: Sequence[str]) -> None:
    """Raise a ServingError for a name of a host in a form that no request has, such as one with a port."""
    for name in names:
        match = _HOST.fullmatch(name)
        if name != "*" and not _is_address(name) and (match is None or match[2] != name or "*" in name):
            raise ServingError(
                f"--allowed-host {name}: give only a host name, such as search.example.org, or * for all"
            )


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
