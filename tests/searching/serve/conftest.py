import socket
import threading
import time

import pytest

TIMEOUT = 60


@pytest.fixture(scope="session")
def running():
    """Start services, each in a thread of its own, and return (address, service)."""
    from likewise.searching.serve.app import create_app
    from likewise.searching.serve.service import Service
    from likewise.searching.serve.start import server_of

    servers = []

    def start(models, *, keys=(), cors=(), hosts=(), **service):
        made = Service(models, engine="torch", **service)
        listening = socket.create_server(("127.0.0.1", 0))
        server = server_of(create_app(made, keys, cors, hosts), made.options, "critical")
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        servers.append((server, thread))
        end = time.monotonic() + TIMEOUT
        while not server.started and time.monotonic() < end:
            time.sleep(0.01)
        return f"http://127.0.0.1:{listening.getsockname()[1]}", made

    yield start
    for server, _ in servers:
        server.should_exit = True
    for _, thread in servers:
        thread.join(TIMEOUT)


@pytest.fixture(scope="session")
def address(running, saved_model, _indexed) -> str:
    """A service of the tiny model, under two names, with the index of `notes`."""
    return running({"tiny": saved_model, "again": saved_model}, indexes=[_indexed])[0]


@pytest.fixture
def client(address):
    """An HTTP client of that service."""
    import httpx

    with httpx.Client(base_url=address, timeout=TIMEOUT) as opened:
        yield opened
