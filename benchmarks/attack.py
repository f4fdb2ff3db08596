"""An attack on `likewise serve`: load, slow clients, and bodies that are too large or not valid.

    python benchmarks/attack.py

The real service runs in a process of its own, with an index of 400 sentences made on the spot and a BERT of two layers
with random weights, or another model (--base); the clients are on the same machine. Each part prints a table and writes
its rows to results/attack.jsonl. Beside the other requests, another process asks for /health every 20 ms: its slowest
answer says how long everybody was held up. Memory is that of the process of the service, in megabytes.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import likewise
from rows import ResultFile

NAME = "attacked"
WORDS = "the old small green cat dog river bridge teacher letter sees paints follows near in behind".split()
QUERIES = {"short": "the old cat near the river", "long": "the old cat near the river sees a letter " * 120}
LARGE = 100_000_000
MOST = 8 << 20
JSON = {"content-type": "application/json"}
PROBE = """
import http.client, sys, time, threading
slowest, stop = 0.0, threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
while not stop.wait(0.02):
    begun = time.perf_counter()
    asked = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=120)
    asked.request("GET", "/health")
    asked.getresponse().read()
    slowest = max(slowest, time.perf_counter() - begun)
    asked.close()
print(slowest)
"""
Row = dict[str, Any]


def tiny_encoder(folder: Path) -> str:
    """Save a BERT of two layers and 32 dimensions with random weights that knows the letters, and return its place."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    from likewise.encoder.build import build_encoder

    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS, *letters, *(f"##{one}" for one in letters)]
    (folder / "base").mkdir()
    (folder / "base" / "vocab.txt").write_text("\n".join(vocabulary))
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(vocabulary), max_position_embeddings=128, **shape)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder / "base")
    tokenizer = BertTokenizerFast(str(folder / "base" / "vocab.txt"), model_max_length=128)
    tokenizer.save_pretrained(folder / "base")
    build_encoder(str(folder / "base"), pooling="mean", head=False).eval().save(
        str(folder / NAME), create_model_card=False
    )
    return str(folder / NAME)


def index_of(folder: Path, model: str) -> str:
    """Index 400 random sentences, and return the place of the index."""
    draw = random.Random(0)
    lines = (" ".join(draw.choices(WORDS, k=draw.randint(6, 40))) for _ in range(400))
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    likewise.index(folder / "text.txt", model=model, out=folder / "text.index", quiet=True)
    return str(folder / "text.index")


@contextmanager
def service(command: list[str], port: int):
    """Run a service until it is ready, and stop it at the end."""
    begun = time.monotonic()
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            while time.monotonic() - begun < 300:
                try:
                    if httpx.get(f"http://127.0.0.1:{port}/health", timeout=60).status_code == 200:
                        break
                except httpx.TransportError:
                    time.sleep(0.1)
            yield process.pid
        finally:
            process.terminate()


def memory(pid: int) -> float:
    """Return the megabytes that a process holds."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


@contextmanager
def health(port: int, row: Row) -> Iterator[None]:
    """Ask for /health in another process meanwhile, and note the slowest answer, in milliseconds."""
    command = [sys.executable, "-c", PROBE, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as probe:
        time.sleep(0.2)
        yield
        told, _ = probe.communicate()
    row["slowest /health ms"] = round(1000 * float(told))


@contextmanager
def memory_of(pid: int, row: Row) -> Iterator[None]:
    """Note how much the process holds before and afterwards, and its peak meanwhile."""
    row["MB before"] = round(memory(pid))
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
    yield
    status = Path(f"/proc/{pid}/status").read_text()
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    row |= {"MB at the peak": round(int(peak) / 1024), "MB after": round(memory(pid))}


async def sent(port: int, clients: int, bodies: list[tuple[str, Row]]) -> tuple[Counter[int], list[float]]:
    """Send (path, body) from so many clients at once; return the statuses, and the seconds of those answered by 200."""
    waiting, statuses, seconds = list(reversed(bodies)), Counter[int](), []

    async def one(client: httpx.AsyncClient) -> None:
        while waiting:
            path, body = waiting.pop()
            begun = time.perf_counter()
            answer = await client.post(path, json=body)
            statuses[answer.status_code] += 1
            if answer.status_code == 200:
                seconds.append(time.perf_counter() - begun)

    opened = [httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=300, verify=False) for _ in range(clients)]
    try:
        await asyncio.gather(*map(one, opened))
    finally:
        await asyncio.gather(*(client.aclose() for client in opened))
    return statuses, seconds


def quantiles(seconds: list[float]) -> Row:
    if not seconds:
        return {"p50 ms": None, "p99 ms": None}
    p50, p99 = 1000 * np.quantile(seconds, [0.5, 0.99])
    return {"p50 ms": round(p50, 1), "p99 ms": round(p99, 1)}


def load(port: int, pid: int, args: argparse.Namespace) -> list[Row]:
    """Searches from many clients at once, more than are allowed to wait; clients do not wait after a 429."""
    rows = []
    for kind, query in QUERIES.items():
        for clients in args.clients:
            row: Row = {"query": kind, "clients": clients, "searches": clients * args.each}
            bodies = [("/search", {"query": f"{query} {i}", "k": 20}) for i in range(clients * args.each)]
            with health(port, row):
                statuses, seconds = asyncio.run(sent(port, clients, bodies))
            row |= {str(status): statuses.pop(status, 0) for status in (200, 429, 504)}
            rows.append(row | {"other": statuses.total()} | quantiles(seconds))
    return rows


def requests(port: int, pid: int, args: argparse.Namespace) -> list[Row]:
    """Thousands of requests of all kinds from 16 clients, and the memory in between."""
    draw, rows = random.Random(1), []

    def body(number: int) -> tuple[str, Row]:
        texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 30))) for _ in range(3)]
        return (
            ("/search", {"query": texts[0], "k": 10}),
            ("/v1/embeddings", {"model": NAME, "input": texts}),
            ("/similarity", {"texts": texts}),
            ("/rerank", {"query": texts[0], "documents": texts}),
        )[number % 4]

    asyncio.run(sent(port, 16, [body(i) for i in range(400)]))  # what is made once
    for part in range(5):
        row: Row = {"requests": (part + 1) * (args.requests // 5)}
        with memory_of(pid, row):
            statuses, seconds = asyncio.run(sent(port, 16, [body(i) for i in range(args.requests // 5)]))
        rows.append(row | {"200": statuses.pop(200, 0), "other": statuses.total()} | quantiles(seconds))
    return rows


def slow(port: int, pid: int, args: argparse.Namespace) -> list[Row]:
    """Half requests that go on a byte at a time, while others are served."""
    head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n"
    rows = []
    for kind, begin, more in (("headers", head, b"a"), ("body", head + b"\r\n{", b" ")):
        row: Row = {"half of the": kind, "connections": args.slow}
        with ExitStack() as stack, memory_of(pid, row), health(port, row):
            opened = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(args.slow)]
            begun = time.monotonic()
            for one in opened:
                one.sendall(begin)
            good = [("/search", {"query": QUERIES["short"]})] * 200
            statuses, seconds = asyncio.run(sent(port, 4, good))
            left, answered = list(opened), Counter[str]()
            while left and time.monotonic() - begun < 30:
                time.sleep(1)
                left = [one for one in left if not ended(one, more, answered)]
            row["ended within s"] = round(time.monotonic() - begun)
        row |= {"still open": len(left), "408": answered["408"], "others' 200": statuses[200]}
        rows.append(row | quantiles(seconds))
    return rows


def ended(one: socket.socket, more: bytes, answered: Counter[str]) -> bool:
    """Send one more byte, and return whether the service has ended the connection."""
    one.setblocking(False)
    try:
        one.send(more)
        found = one.recv(4096)
    except BlockingIOError:
        return False
    except OSError:
        return True
    answered[found.split(b" ")[1].decode() if found else "closed"] += 1
    return True


def large(port: int, pid: int, args: argparse.Namespace) -> list[Row]:
    """Bodies of 100 MB from 16 clients at once, which read the answer when it comes, or when all is sent."""
    rows = []
    for told, early in ((True, True), (True, False), (False, True), (False, False), (False, False), (False, False)):
        row: Row = {"body": "with its length" if told else "in chunks", "read": "early" if early else "at the end"}
        with memory_of(pid, row), health(port, row), ThreadPoolExecutor(16) as pool:
            found = list(pool.map(lambda _, sort=(told, early): flood(port, *sort), range(16)))
        statuses = Counter(status for status, _ in found)
        answers = {"413": statuses.pop(413, 0), "other": statuses.total()}
        rows.append(row | answers | {"slowest s": max(seconds for _, seconds in found)})
    return rows


def flood(port: int, told: bool, early: bool) -> tuple[int, float]:
    """Send a body, all of it or until there is an answer; return its status, 0 for none, and the seconds it took."""
    begun = time.perf_counter()
    kind = f"Content-Length: {LARGE}" if told else "Transfer-Encoding: chunked"
    piece = b"a" * (1 << 16)
    piece = piece if told else b"%x\r\n%b\r\n" % (len(piece), piece)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as opened:
        opened.sendall(f"POST /search HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n\r\n".encode())
        with suppress(OSError):  # closed by the service, which may have answered before
            for _ in range(LARGE // len(piece)):
                if early and select.select([opened], [], [], 0)[0]:
                    break
                opened.sendall(piece)
        try:
            answer = opened.recv(4096)
        except OSError:
            answer = b""
    return int(answer.split()[1]) if answer else 0, round(time.perf_counter() - begun, 2)


def filled(begin: bytes, piece: bytes, end: bytes) -> bytes:
    return begin + piece * ((MOST - len(begin) - len(end)) // len(piece) - 1) + piece.rstrip(b",") + end


def invalid(port: int, pid: int, args: argparse.Namespace) -> list[Row]:
    """Bodies of 8 MiB that are not valid, one after another, and then 8 of each kind at once."""
    start = b'{"model":"%b","input":' % NAME.encode()
    whole = MOST - len(start) - 3
    bodies = {
        "empty objects": filled(start + b"[", b"{},", b"]}"),
        "numbers": filled(start + b"[", b"0,", b"]}"),
        "empty texts": filled(start + b"[", b'"",', b"]}"),
        "brackets": filled(start, b"[", b"}"),
        "escapes": filled(start + b'"', b"\\u00e9", b'"}'),
        "one text": start + b'"%b"}' % (b"a" * (whole - 1)),
        "one number": start + b"%b}" % (b"1" * whole),
        "bytes that are not UTF-8": start + b'"%b"}' % (b"\xff" * (whole - 1)),
        "cut in the middle": start + b'["%b' % (b"a" * whole),
    }
    rows = []
    for kind, body in bodies.items():
        for count in (1, 8):
            row: Row = {"body": kind, "at once": count}
            with memory_of(pid, row), health(port, row):
                statuses, seconds = asyncio.run(posted(port, body, count))
            answers = ", ".join(map(str, sorted(statuses)))
            rows.append(row | {"answers": answers, "slowest answer ms": round(1000 * max(seconds))})
    return rows


async def posted(port: int, body: bytes, count: int) -> tuple[set[int], list[float]]:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=300, verify=False) as client:

        async def one() -> tuple[int, float]:
            begun = time.perf_counter()
            try:
                status = (await client.post("/v1/embeddings", content=body, headers=JSON)).status_code
            except httpx.TransportError:
                status = 0  # cut off without an answer
            return status, time.perf_counter() - begun

        found = await asyncio.gather(*(one() for _ in range(count)))
    return {status for status, _ in found}, [seconds for _, seconds in found]


PARTS: dict[str, Callable[[int, int, argparse.Namespace], list[Row]]] = {
    "load": load,
    "requests": requests,
    "slow": slow,
    "large": large,
    "invalid": invalid,
}


def table(rows: list[Row]) -> str:
    names = list(rows[0])
    lines = [names, ["---:" if isinstance(rows[0][name], int | float) else "---" for name in names]]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in [*lines, *([*row.values()] for row in rows)])


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--base", help="a model in place of the tiny one")
    found.add_argument("--table", default="attack", help="the result file")
    found.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    found.add_argument("--clients", type=int, nargs="+", default=[16, 64, 256])
    found.add_argument("--each", type=int, default=4, help="searches of each client")
    found.add_argument("--requests", type=int, default=5000)
    found.add_argument("--slow", type=int, default=500, help="connections that are slow")
    return found


def main() -> None:
    args = parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = args.base or tiny_encoder(Path(folder))
        index = index_of(Path(folder), model)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "likewise", "serve", f"{NAME}={model}", "--index", index, "--port", str(port)]
        with service(command, port) as pid:
            asyncio.run(sent(port, 4, [("/search", {"query": "the cat"})] * 20))
            for name in args.only:
                begun = time.monotonic()
                rows = PARTS[name](port, pid, args)
                print(f"\n{PARTS[name].__doc__}\n\n{table(rows)}\n\n{time.monotonic() - begun:.0f} s", flush=True)
                about = {"part": name, "base": args.base or "a BERT of 2 layers"}
                ResultFile(args.table).add(*(about | row for row in rows))


if __name__ == "__main__":
    main()
