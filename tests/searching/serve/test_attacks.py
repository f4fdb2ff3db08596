"""What an attack found, and what holds now."""

import asyncio
import gc
import json
import re
import socket
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise.searching.serve
from likewise.searching.serve import ServeOptions
from likewise.searching.serve.app import create_app
from likewise.searching.serve.guard import _Values

PAGE = Path(likewise.searching.serve.__file__).parent / "page"
REPEATED = "length(repeat(repeat(text, 1000), 1000)) > 0"


def raw(address, head):
    """Return the answer to bytes that no HTTP client would send."""
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=10) as opened:
        opened.sendall(head)
        pieces = []
        while piece := opened.recv(65536):
            pieces.append(piece)
        return b"".join(pieces)


@pytest.mark.parametrize(
    "host", ["a//etc/passwd?", "127.0.0.1//etc/passwd?", "x@/etc/passwd#", "evil.example", "\\", ""]
)
@pytest.mark.parametrize("path", ["/page.css", "/"])
def test_no_host_leads_to_another_file(address, host, path):
    head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    answer = raw(address, head.encode())
    assert b"root:" not in answer
    assert answer.split()[1] in (b"421", b"400")


def test_a_connection_whose_headers_do_not_arrive_is_closed(running, saved_model):
    address, _ = running({"tiny": saved_model}, options=ServeOptions(header_timeout=0.5, body_timeout=0.5))
    head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90\r\n"
    begun = time.monotonic()
    assert raw(address, b"") == raw(address, head) == b"", "closed without an answer"
    assert raw(address, head + b"\r\n{").split()[1] == b"408"
    assert time.monotonic() - begun < 8
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=10) as opened:
        for _ in range(2):  # the second request of a connection has as much time as the first
            for piece in (b"GET /health HTTP/1.1\r\n", b"Host: localhost\r\n", b"\r\n"):
                opened.sendall(piece)
                time.sleep(0.1)
            assert b"200 OK" in opened.recv(4096)
        opened.sendall(head)
        assert opened.recv(4096) == b""


POST = b"POST /search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
MANY = b"".join(b"X-%d: %b\r\n" % (i, b"a" * 1000) for i in range(60))
ENDLESS = {
    "an address": (b"GET /", b"a" * 60_000),
    "a header": (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ", b"a" * 60_000),
    "headers": (b"GET /health HTTP/1.1\r\nHost: localhost\r\n", MANY),
    "short headers": (b"GET /health HTTP/1.1\r\nHost: localhost\r\n", b"a: b\r\n" * 10_000),
    "a name": (b"GET /health HTTP/1.1\r\n", b"a" * 60_000),
    "blank lines": (b"", b"\r\n" * 30_000),
    "trailers": (POST + b"\r\n1\r\n{\r\n0\r\n", MANY),
    "a trailer": (POST + b"\r\n1\r\n{\r\n0\r\nX: ", b"a" * 60_000),
    "trailers of a request without a body": (POST.replace(b"POST", b"GET") + b"\r\n0\r\n", MANY),
    "the extensions of a chunk": (POST + b"\r\n1;", b"a=b;" * 15_000),
    "an extension of a chunk": (POST + b"\r\n1;a=", b"b" * 60_000),
    "extensions of a later chunk": (POST + b"\r\n1\r\n{\r\n1;", b"a=b;" * 15_000),
    "headers of a later request": (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\n", MANY),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_is_no_body_has_an_end(address, kind):
    place, (first, piece) = urlsplit(address), ENDLESS[kind]
    with socket.create_connection((place.hostname, place.port), timeout=10) as opened:
        sent, answer = 0, b""
        try:
            opened.sendall(first)
            while sent < 50e6:
                opened.sendall(piece)
                sent += len(piece)
        except OSError:  # closed
            pass
        with suppress(OSError):
            while more := opened.recv(65536):
                answer += more
    assert sent < 15e6, "what the system's own buffers hold"
    assert b"HTTP/1.1 431 " in answer or not answer or kind == "a name"
    assert httpx.get(f"{address}/health").status_code == 200


@pytest.mark.parametrize("size", [60_000, 70_000, 200_000])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_head_of_64_kib_is_the_longest(address, size, at_once):
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: %b\r\n\r\n" % (b"a" * size)
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=10) as opened:
        for piece in [head] if at_once else [head[i : i + 8000] for i in range(0, len(head), 8000)]:
            opened.sendall(piece)
        answer = b"".join(iter(lambda: opened.recv(65536), b""))
    status, told = answer.split()[1], answer.partition(b"\r\n\r\n")[2]
    assert status == (b"200" if size == 60_000 else b"431")
    assert "error" in json.loads(told) or size == 60_000


def test_a_body_of_small_chunks_is_read_though_they_are_more_than_its_text(client, address):
    body = b'{"texts": ["%b", "b"]}' % (b"a" * 30_000)
    pieces = b"".join(b"1\r\n%c\r\n" % sign for sign in body)
    answer = raw(
        address,
        POST.replace(b"/search", b"/similarity")
        + b"Content-Type: application/json\r\nConnection: close\r\n\r\n"
        + pieces
        + b"0\r\nX: y\r\n\r\n",
    )
    assert answer.split()[1] == b"200"


def test_a_client_that_does_not_read_its_answer_is_cut_off_and_a_slow_one_is_not(running, saved_model):
    address, _ = running({"tiny": saved_model}, options=ServeOptions(timeout=1))
    body = json.dumps({"texts": ["the cat"] * 1024}).encode()  # the answer has a million cosines
    head = b"POST /similarity HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
    place = urlsplit(address)

    def read(more, rest, pause):
        """Return the bytes that a client reads of an answer if it rests at first, and for a while after each piece."""
        with socket.socket() as opened:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            opened.settimeout(30)
            opened.connect((place.hostname, place.port))
            opened.sendall(head % len(body) + more + b"\r\n" + body)
            assert opened.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"
            time.sleep(rest)
            end, size = time.monotonic() + 3, 0
            with suppress(ConnectionResetError):
                while (piece := opened.recv(1 << 17)) and (not pause or time.monotonic() < end):
                    size += len(piece)
                    time.sleep(pause)
            return size, bool(piece)

    with ThreadPoolExecutor(3) as pool:
        silent = pool.submit(read, b"", 3, 0)
        closing = pool.submit(read, b"Connection: close\r\n", 3, 0)
        slow = pool.submit(read, b"", 0, 0.05)
    whole = len(httpx.post(f"{address}/similarity", content=body, headers={"content-type": "application/json"}).content)
    assert silent.result()[0] < whole
    assert closing.result()[0] < whole
    assert slow.result()[1], "it is still being answered"


def test_an_address_has_so_many_connections(running, saved_model):
    address, _ = running({"tiny": saved_model}, options=ServeOptions(connections=3))
    place = urlsplit(address)
    for _ in range(2):  # those that are closed do not count
        with ExitStack() as stack:
            for _ in range(3):
                opened = stack.enter_context(socket.create_connection((place.hostname, place.port), timeout=10))
                opened.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert opened.recv(4096).split()[1] == b"200"
            refused = raw(address, b"")
            assert refused.split()[1] == b"503"
            assert "connections" in json.loads(refused.partition(b"\r\n\r\n")[2])["error"]["message"]
        time.sleep(0.2)


def test_what_is_no_http_is_a_400_in_the_error_format(address):
    answer = raw(address, b"\x16\x03\x01 hello\r\n\r\n")
    assert answer.split()[1] == b"400"
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("told", ["Content-Length: 30000000", "Transfer-Encoding: chunked"])
def test_a_client_that_reads_the_answer_at_the_end_learns_that_its_body_is_too_large(running, saved_model, told):
    address, _ = running({"tiny": saved_model}, options=ServeOptions(body_timeout=2))
    place = urlsplit(address)
    piece = b'"%b",' % (b"a" * 30_000) * 3
    piece = piece if told.startswith("C") else b"%x\r\n%b\r\n" % (len(piece), piece)
    with socket.create_connection((place.hostname, place.port), timeout=10) as opened:
        opened.sendall(f"POST /search HTTP/1.1\r\nHost: localhost\r\n{told}\r\n\r\n".encode())
        for _ in range(300):
            opened.sendall(piece)
        assert opened.recv(65536).split()[1] == b"413"
        begun = time.monotonic()
        assert opened.recv(100) == b"", "the rest does not come, and is not waited for"
        assert time.monotonic() - begun < 8


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1", "[::1]:80", "10.1.2.3:8080"])
def test_addresses_and_localhost_are_hosts_of_the_service(address, host):
    answer = httpx.get(f"{address}/page.css", headers={"Host": host})
    assert answer.content == (PAGE / "page.css").read_bytes()


def test_other_hosts_are_refused_unless_they_are_allowed(running, saved_model, address):
    named = running({"tiny": saved_model}, hosts=["search.example"])[0]
    assert httpx.get(f"{named}/health", headers={"Host": "Search.example:443"}).status_code == 200
    for place in (named, address):
        refused = httpx.get(f"{place}/v1/models", headers={"Host": "evil.example"})
        assert refused.status_code == 421
        assert "--allowed-host" in refused.json()["error"]["message"]


def test_bearer_may_be_written_in_any_case(running, saved_model):
    locked = running({"tiny": saved_model}, keys=["a-key"])[0]
    for header, status in {"bearer a-key": 200, "BEARER a-key": 200, "Basic a-key": 401, "a-key": 401}.items():
        assert httpx.get(f"{locked}/v1/models", headers={"Authorization": header}).status_code == status


@pytest.mark.parametrize("where", [REPEATED, "1=1; DROP TABLE x"])
def test_a_filter_is_no_program(client, where):
    answer = client.post("/search", json={"query": "music", "k": 1, "mode": "words", "where": where})
    assert answer.status_code == 400
    assert "is not valid" in answer.json()["error"]["message"]


def filled(start, piece, end, size=(8 << 20) - 100):
    return start + piece * ((size - len(start) - len(end)) // len(piece)) + piece.rstrip(b",") + end


@pytest.fixture(scope="module")
def posted(running, saved_model, _indexed):
    """The app of a service, and each path that takes a body, with the names of the body's fields."""
    service = running({"tiny": saved_model}, indexes=[_indexed])[1]
    app = create_app(service)
    table = app.app.openapi()
    fields = {}
    for path, methods in table["paths"].items():
        for method in methods.values():
            if "requestBody" in method:
                (kind,) = method["requestBody"]["content"].values()
                name = kind["schema"]["$ref"].rpartition("/")[2]
                fields[path] = list(table["components"]["schemas"][name]["properties"])
    assert {"/v1/embeddings", "/similarity", "/search"} <= fields.keys()
    return app, fields


async def called(app, path, body, longest):
    """Send a body to an app in pieces, as a server does; return the status and how long the loop was held up.

    In seconds of the thread's own processor time, whatever else the machine does.
    """
    pieces = [body[start : start + (1 << 16)] for start in range(0, len(body), 1 << 16)]
    status, held, over = None, [0.0], asyncio.Event()

    async def receive():
        if pieces:
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        nonlocal status
        status = message.get("status", status)

    async def watch():
        while not over.is_set():
            begun = time.thread_time()
            await asyncio.sleep(0)
            held.append(time.thread_time() - begun)

    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": [(b"host", b"localhost"), (b"content-type", b"application/json")], "root_path": ""}
    watching = asyncio.create_task(watch())
    await asyncio.wait_for(app(scope, receive, send), longest)
    over.set()
    await watching
    return status, max(held)


@pytest.mark.parametrize(
    "piece", [b"{},", b"[],", b"0,", b'"",', b'"\\\\",', b'{"a":0},', b"null,", b"[", b"\\", b'""']
)
def test_many_small_values_are_refused_before_they_are_made(posted, piece):
    app, fields = posted
    for path, names in fields.items():
        for name in names:
            body = filled(b'{"model":"tiny","%b":[' % name.encode(), piece, b"]}")
            begun = time.thread_time()
            status, held = asyncio.run(called(app, path, body, 60))
            assert status == 400, (path, name)
            assert held < 0.05, "a few milliseconds: other requests have their turn"
            assert time.thread_time() - begun < 0.5, "a tenth of a second"


LARGE = {
    "signs of four bytes": filled(b'{"model":"tiny","NAME":"', "\U0001f600a".encode(), b'"}'),
    "one text": b'{"model":"tiny","NAME":"%b"}' % (b"a" * ((8 << 20) - 100)),
    "escapes": filled(b'{"model":"tiny","NAME":"', b"\\u00e9", b'"}'),
    "long texts": filled(b'{"model":"tiny","NAME":[', b'"%b",' % (b"ab " * 20_000), b"]}", 8_300_000),
    "a number": b'{"model":"tiny","NAME":%b}' % (b"1" * ((8 << 20) - 100)),
    "a fraction": b'{"model":"tiny","NAME":0.%b}' % (b"1" * ((8 << 20) - 100)),
    "a key": b'{"model":"tiny","NAME":"a","%b":0}' % (b"a" * ((8 << 20) - 100)),
    "deep": b'{"model":"tiny","NAME":%b%b}' % (b"[" * 16_000, b"]" * 16_000),
}


@pytest.mark.parametrize("kind", LARGE)
def test_a_large_body_holds_no_one_up_and_takes_little_memory(posted, kind):
    app, fields = posted
    for path, names in fields.items():
        for name in names:
            body = LARGE[kind].replace(b"NAME", name.encode())
            status, held = asyncio.run(called(app, path, body, 60))
            assert 400 <= status < 500, (path, name)
            assert held < 0.5, "up to 30 ms on a quiet machine, for a body of texts that are as long as they may be"
    tracemalloc.start()
    asyncio.run(called(app, path, body, 60))
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    assert peak < 100


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (b'{"model":"tiny","input":[' + b'"a long text",' * 700_000, 400),
        (b'{"model":"tiny","input":[' + b'"%b",' % (b"a" * 32_000) * 300, 413),
        (LARGE["a number"].replace(b"NAME", b"input"), 400),
        (LARGE["one text"].replace(b"NAME", b"input")[:-9], 400),
        (LARGE["one text"].replace(b"NAME", b"input"), 400),
    ],
    ids=["many texts", "too large", "a number", "cut", "a long text"],
)
def test_a_body_that_is_refused_is_not_kept(posted, body, wanted):
    app, _ = posted
    gc.collect()
    gc.disable()  # the service's own come late, for it holds much that lives long
    tracemalloc.start()
    try:
        assert asyncio.run(called(app, "/v1/embeddings", body, 60))[0] == wanted
        assert tracemalloc.get_traced_memory()[0] < 4e6
    finally:
        tracemalloc.stop()
        gc.enable()


def test_another_encoding_is_refused_since_its_values_cannot_be_counted(client):
    hidden = '{"model":"tiny","input":["\\"",' + "{}," * 100 + '""]}'
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        answer = client.post(
            "/v1/embeddings", content=hidden.encode(encoding), headers={"content-type": "application/json"}
        )
        assert answer.status_code == 400
        assert "UTF-8" in answer.json()["error"]["message"]


@given(st.text('\\",[{a', max_size=40), st.integers(1, 9))
def test_values_are_counted_whatever_the_pieces(text, size):
    signs = quotes = 0
    for found in re.findall(r'\\[\\"]|.', text):
        quotes += found == '"'
        signs += found in ",[{" and quotes % 2 == 0
    values = _Values(1000, 1000)
    for start in range(0, len(text), size):
        values.count(text[start : start + size].encode())
    assert (values._signs, values._quotes) == (signs, quotes)


@pytest.mark.parametrize("sign", ["a", "\U0001f600"])
def test_a_text_may_be_as_long_as_it_is_allowed(client, sign):
    def status(count):
        body = json.dumps({"model": "tiny", "input": sign * count})  # with an escape for each half of a pair
        return client.post("/v1/embeddings", content=body, headers={"content-type": "application/json"}).status_code

    assert (status(32_768), status(32_769)) == (200, 400)


def test_as_many_texts_as_are_allowed_are_taken(client):
    texts = ['a "quoted", [text] {with} \\ signs'] * 2048
    assert client.post("/similarity", json={"texts": texts[:512], "others": texts[:512]}).status_code == 200
    assert client.post("/v1/embeddings", json={"model": "tiny", "input": texts}).status_code == 200


@pytest.mark.parametrize("query", ["the cat", "the old dog " * 400])
def test_more_searches_than_threads_are_answered(running, saved_model, indexed, query):
    address, service = running({"tiny": saved_model}, indexes=[indexed], options=ServeOptions(searches=16, timeout=30))

    def ask(_):
        return httpx.post(f"{address}/search", json={"query": query, "k": 20}, timeout=60)

    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(ask, range(64)))
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) <= {200, 429}
    assert statuses.count(200) >= 16
    assert all(answer.headers["retry-after"] for answer in answers if answer.status_code == 429)
    assert ask(0).status_code == 200
    assert service._free._value == 16


def test_the_searches_of_clients_that_have_left_are_dropped(running, saved_model, indexed, monkeypatch):
    address, service = running({"tiny": saved_model}, indexes=[indexed])
    model, free, encoded = service.models["tiny"].encoder, threading.Event(), []
    vectors = model.vectors

    def slow(items):
        free.wait(20)
        encoded.append(len(items))
        return vectors(items)

    monkeypatch.setattr(model, "vectors", slow)

    def ask(number):
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{address}/search", json={"query": f"the cat {number} " * 300, "mode": "vectors"}, timeout=0.5)

    with ThreadPoolExecutor(15) as pool:
        list(pool.map(ask, range(15)))
    end, most = time.monotonic() + 10, service.options.searches
    while service._free._value < most - model.workers and time.monotonic() < end:
        time.sleep(0.05)
    free.set()
    time.sleep(0.5)
    assert service._free._value == most
    assert sum(encoded) <= 2 * model.workers + 2, "what was in a batch already"
    assert httpx.get(f"{address}/health").status_code == 200


def test_bodies_that_are_not_json_have_one_sentence(client):
    for body in (b"[" * 1000, b'"', b"\xff" * 100, json.dumps({"a": 1}).encode()[:-1], b"{" * 3, b'"\\'):
        answer = client.post("/similarity", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400
