"""The start and the end of a service."""

from __future__ import annotations

import gc
import os
import re
import signal
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from likewise.errors import require_extra
from likewise.inference.engines.engine import EngineName, EnginePrecision
from likewise.runs.options import checked
from likewise.runs.progress import Progress
from likewise.runs.results import job_of
from likewise.runs.whole_files import Record
from likewise.searching.serve.serve_options import ServeOptions, ServingError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_NAMED = re.compile(r"([\w.-]+)=(.+)")


@checked
def serve(
    models: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, object],
    *,
    index: Sequence[str | os.PathLike[str]] = (),
    reranker: str | os.PathLike[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    api_key_file: str | os.PathLike[str] | None = None,
    cors: Sequence[str] = (),
    allowed_host: Sequence[str] = (),
    engine: EngineName = "auto",
    precision: EnginePrecision = "fp32",
    quiet: bool = False,
    **options: Any,
) -> None:
    """Serve models and indexes over HTTP, with an OpenAI-compatible API for embeddings, until the process is stopped.

    After Ctrl-C, SIGTERM or SIGHUP, the service finishes the requests that it has accepted.

    Args:
        models: Paths or names of the models: folders, hub names or bundled:minilm. `NAME=MODEL` sets the name in the
            API, which is the folder's name by default.
        index: Paths to the indexes to search, each built with one of the models. `NAME=FOLDER` sets the name in the
            API, which is the folder's name by default.
        reranker: Path or hub name of a cross-encoder that answers rerank requests; by default the token vectors of a
            model answer them.
        host: Address to listen on; 0.0.0.0 listens on all interfaces.
        port: Port to listen on; 0 selects a free port.
        api_key_file: Path to a file with one API key per line; every request must then send one of the keys.
        cors: Origins whose web pages may call the service, such as https://example.org.
        allowed_host: Host names by which requests may address the service, in addition to `host`, localhost and IP
            addresses; * allows every name. The check protects against DNS rebinding.
        engine, precision: See `load`; "auto" exports the models for the fastest engine at the first start.
        quiet: Whether to print nothing to standard error.
        options: Limits of `ServeOptions`.

    Raises:
        ServingError: If the port is in use, the key file contains no key, or an index was built with another model.
        LoadError: If a model or the cross-encoder cannot be loaded.
        MissingExtraError: If FastAPI or uvicorn is not installed.

    Example:
        >>> import json, signal, socket, threading, time, urllib.request
        >>> import likewise
        >>> with socket.create_server(("127.0.0.1", 0)) as free:
        ...     port, names = free.getsockname()[1], []
        >>> def client():
        ...     while not names:
        ...         try:
        ...             with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models") as response:
        ...                 names.extend(model["id"] for model in json.load(response)["data"])
        ...         except OSError:  # it is not ready yet
        ...             time.sleep(0.1)
        ...     signal.raise_signal(signal.SIGINT)  # as Ctrl-C does
        >>> threading.Thread(target=client, daemon=True).start()
        >>> likewise.serve("bundled:minilm", port=port, engine="torch", quiet=True)
        >>> print(*names)
        minilm
    """
    require_extra("serve", "A service", "fastapi", "fastapi_offline", "uvicorn", "prometheus_client", "orjson")
    limits, progress = ServeOptions(**options), Progress(quiet)
    keys = _keys(Path(api_key_file)) if api_key_file is not None else []
    named, hosts = _named(models), [host, *allowed_host]
    from likewise.searching.serve.guard import check_hosts, checked_origins

    origins = checked_origins(cors)
    check_hosts(hosts)
    with _bound(host, port) as listening:  # before the models: a port in use is said at once
        from likewise.searching.serve.app import create_app
        from likewise.searching.serve.service import Service, index_name

        indexes = {name: Path(folder) for name, folder in _by_name("indexes", index, index_name).items()}
        service = Service(named, indexes, limits, engine, precision, progress, reranker)
        app = create_app(service, keys, origins, hosts)
        at, taken = listening.getsockname()[:2]
        progress.tell(f"http://{f'[{at}]' if ':' in at else at}:{taken} serves {', '.join(service.models)}")
        if not keys and not at.startswith("127.") and at != "::1":
            progress.tell("Anyone who can reach this address may use it: require a key by --api-key-file.")
        server = server_of(app, limits)
        # Its own context would send the signal again at the end, and so end the process as if it had failed.
        server.capture_signals = lambda: _signals(server.handle_exit)
        gc.freeze()  # what is loaded stays: looking through it for garbage held up all requests for half a second
        server.run(sockets=[listening])
        progress.tell("Stopped.")


def server_of(app: ASGIApp, limits: ServeOptions, log_level: str = "warning") -> Any:
    """Return the uvicorn server of an application."""
    import uvicorn

    from likewise.searching.serve.connection import Connection

    seconds = int(limits.timeout) + 5
    connection = partial(Connection, limits, Counter[str]())
    settings: Record = {"http": connection, "ws": "none", "timeout_graceful_shutdown": seconds}
    settings["log_config"] = None  # uvicorn's own would close the log files of the program that calls this
    return uvicorn.Server(uvicorn.Config(app, log_level=log_level, access_log=False, **settings))


@contextmanager
def _signals(stop: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call `stop` on Ctrl-C, SIGTERM and SIGHUP in a `with` block; under nohup, SIGHUP stays without effect."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hangup = getattr(signal, "SIGHUP", None)  # not on Windows
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        numbers.append(hangup)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _named(models: Any) -> Record:
    if isinstance(models, Mapping):
        return dict(models)
    listed = [models] if isinstance(models, str | os.PathLike) else models
    named = _by_name("models", listed, lambda text: Path(os.path.abspath(text)).name.rpartition(":")[2])  # noqa: PTH100
    for model in named.values():
        if job_of(model) == "index":
            raise ServingError(f"{model} is an index, not a model: pass it by --index {model}")
    if not named:
        raise ServingError("no model was given: give one, as in `likewise serve bundled:minilm`")
    return named


def _by_name(kinds: str, listed: Sequence[Any], usual: Callable[[str], str]) -> dict[str, str]:
    """Return places by name: NAME=PLACE gives one, otherwise it is the usual one."""
    named: dict[str, str] = {}
    for text in map(os.fspath, listed):
        match = None if Path(text).exists() else _NAMED.fullmatch(text)
        name, place = match.groups() if match else (usual(text), text)
        if name in named:
            raise ServingError(f"two {kinds} are called {name!r}: give names, such as first={text}")
        named[name] = place
    return named


def _keys(path: Path) -> list[str]:
    if not path.is_file():
        raise ServingError(f"there is no file {path}: create it, with one API key per line")
    try:
        keys = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise ServingError(f"{path} is not UTF-8 text: write one API key per line") from None
    if not keys:
        raise ServingError(f"{path} contains no API key: write one per line")
    return keys


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """Provide a socket at an address, which does not listen yet."""
    if not 0 <= port <= 65_535:  # a system may take it modulo 65,536
        raise ServingError(f"port must be from 1 to 65535, or 0 for a free port, not {port}")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except (OSError, OverflowError) as error:
        raise ServingError(f"cannot listen at {host}:{port} ({error}): give another --port or --host") from None
    with listening:
        yield listening
