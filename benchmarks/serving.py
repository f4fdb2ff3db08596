"""`likewise serve` beside a plain FastAPI loop over `SentenceTransformer.encode`: requests a second, p50 and p99.

    python benchmarks/serving.py --model bundled:minilm --corpus sentences.txt.gz

Each service runs in a process of its own, in turn, with the same model; the client is httpx in this process, on the
same machine; infinity-emb needs an environment of its own with older releases. Also bad requests, to be answered
by 4xx, and the memory before and after.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import re
import subprocess
import sys
import time
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import httpx
import numpy as np
import orjson

from likewise.corpus.files import numbered_lines

PLAIN = """
import sys
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(sys.argv[1], device="cpu")
app = FastAPI()

class Body(BaseModel):
    input: list[str]

@app.get("/health")
def health():
    return {}

@app.post("/v1/embeddings")
ASYNC def embed(body: Body):
    vectors = model.encode(body.input, normalize_embeddings=True, show_progress_bar=False)
    return {"data": [{"embedding": row} for row in vectors.tolist()]}

uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
"""
SERVED = "served"


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
            yield process.pid, time.monotonic() - begun
        finally:
            process.terminate()


def memory(pid: int) -> float:
    """Return the megabytes that a process holds."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def processor_seconds(pid: int) -> float:
    """Return the seconds of processor time that a process has used: on a busy machine they say more than the wall."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_seconds() -> float:
    """Return the seconds of processor time that the machine has used, for whatever work."""
    fields = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    return (sum(map(int, fields)) - int(fields[3]) - int(fields[4])) / os.sysconf("SC_CLK_TCK")


async def load(port: int, bodies: list[dict], clients: int) -> tuple[float, np.ndarray, int]:
    """Send all bodies from so many clients, and return the seconds, each one's latency, and the errors."""
    waiting, seconds, errors = list(reversed(bodies)), [], 0

    async def one(client: httpx.AsyncClient) -> None:
        nonlocal errors
        while waiting:
            body = waiting.pop()
            begun = time.perf_counter()
            answer = await client.post("/v1/embeddings", json=body)
            seconds.append(time.perf_counter() - begun)
            errors += answer.status_code != 200 or len(orjson.loads(answer.content)["data"]) != len(body["input"])

    async with AsyncExitStack() as stack:
        # A pool that 64 clients share takes 12 ms a request for itself, more than the service; one of its own 1.7.
        opened = [
            await stack.enter_async_context(
                httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=300, verify=False)
            )
            for _ in range(clients)
        ]
        await asyncio.gather(*(client.get("/health") for client in opened))
        begun = time.perf_counter()
        await asyncio.gather(*map(one, opened))
        return time.perf_counter() - begun, np.array(seconds), errors


def hostile(port: int) -> dict[str, int]:
    """Send bad requests, and return the status of each."""
    head = b'{"model": "served", "input": '
    bodies = {
        "not JSON": head,
        "wrong type": head + b'{"a": 1}}',
        "10 MB": head + b'"' + b"a" * 10_000_000 + b'"}',
        "NaN": head + b"NaN}",
        "lone surrogate": head + b'"\\ud83d"}',
        "deep nesting": head + b"[" * 200_000 + b"]" * 200_000 + b"}",
        "not UTF-8": head + b'"\xff\xfe"}',
        "5,000 texts": head + b"[" + b", ".join([b'"a"'] * 5000) + b"]}",
    }
    address, headers = f"http://127.0.0.1:{port}", {"content-type": "application/json"}
    found = {
        name: httpx.post(f"{address}/v1/embeddings", content=body, headers=headers, timeout=60).status_code
        for name, body in bodies.items()
    }
    return found | {"then a good one": httpx.get(f"{address}/health").status_code}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    found.add_argument("--model", default="bundled:minilm")
    found.add_argument("--corpus", type=Path, required=True, help="a sentence on each line")
    found.add_argument(
        "--requests", type=int, default=280, help="of each arm and number of clients; an eighth of them with batches"
    )
    found.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    found.add_argument("--batch", type=int, default=32, help="texts of a batch request; 0 leaves these out")
    found.add_argument("--precision", nargs="+", default=["fp32", "int8"])
    found.add_argument("--plain", nargs="*", default=["async def", "def"], help="kinds of the plain loop")
    found.add_argument("--infinity", help="path of infinity_emb, in an environment of its own")
    found.add_argument("--port", type=int, default=8765)
    found.add_argument("--long", type=int, default=0, help="requests of a long run, for the memory")
    return found


def main() -> None:
    options = parser().parse_args()
    from likewise.inference.load_model import check_loadable

    folder = str(check_loadable(options.model).folder)
    lines = (raw.decode().strip() for _, raw in numbered_lines(options.corpus))
    texts = [line for _, line in zip(range(20_000), lines, strict=False)]
    short = [text for text in texts if 3 <= len(text.split()) <= 12]
    draw = random.Random(0)
    python, port = sys.executable, str(options.port)
    arms = {
        f"plain loop, {kind}": [python, "-c", PLAIN.replace("ASYNC def", kind), folder, port] for kind in options.plain
    }
    for precision in options.precision:
        command = ["-m", "likewise", "serve", f"{SERVED}={folder}", "--port", port, "--precision", precision]
        arms[f"likewise serve, {precision}"] = [python, *command]
    if options.infinity:
        command = [options.infinity, "v2", "--model-id", folder, "--served-model-name", SERVED, "--url-prefix", "/v1"]
        arms["infinity-emb"] = [*command, "--port", port, "--device", "cpu", "--engine", "torch"]
    titles = ["service", "request", "clients", "requests a second", "p50 ms", "p99 ms", "processor ms a request"]
    print(f"| {' | '.join([*titles, 'of the client', 'cores of other work', 'errors'])} |")
    print("| --- | --- |" + " ---: |" * 8)
    gc.freeze()  # a look through all that is imported here would stop every client
    notes = []
    for name, command in arms.items():
        with service(command, options.port) as (pid, start):
            asyncio.run(load(options.port, [{"model": SERVED, "input": ["warm up"]}] * 20, 4))
            before = memory(pid)
            sizes = {"one short text": 1, f"{options.batch} sentences": options.batch}
            for kind, size in [(kind, size) for kind, size in sizes.items() if size]:
                for clients in options.clients:
                    count = max(clients, options.requests // (8 if size > 1 else 1))
                    inputs = [draw.choices(short if size == 1 else texts, k=size) for _ in range(count)]
                    bodies = [{"model": SERVED, "input": one} for one in inputs]
                    used, ours, busy, begun = (
                        processor_seconds(pid),
                        time.process_time(),
                        busy_seconds(),
                        time.monotonic(),
                    )
                    seconds, each, errors = asyncio.run(load(options.port, bodies, clients))
                    p50, p99 = 1000 * np.quantile(each, [0.5, 0.99])
                    used, ours = processor_seconds(pid) - used, time.process_time() - ours
                    others = max(0.0, busy_seconds() - busy - used - ours) / (time.monotonic() - begun)
                    print(
                        f"| {name} | {kind} | {clients} | {count / seconds:.1f} | {p50:.0f} | {p99:.0f} "
                        f"| {1000 * used / count:.1f} | {1000 * ours / count:.1f} | {others:.2f} | {errors} |",
                        flush=True,
                    )
            notes.append(f"{name}: ready after {start:.1f} s, {before:.0f} MB, {memory(pid):.0f} MB at the end")
            if name.startswith("likewise"):
                notes.append(f"{name}, bad requests: {hostile(options.port)}, {memory(pid):.0f} MB")
                if options.long and name.endswith(options.precision[0]):
                    for part in range(5):
                        bodies = [{"model": SERVED, "input": [draw.choice(short)]} for _ in range(options.long // 5)]
                        asyncio.run(load(options.port, bodies, 64))
                        notes.append(f"after {(part + 1) * len(bodies):,} more requests: {memory(pid):.0f} MB")
    print("\n" + "\n".join(notes))


if __name__ == "__main__":
    main()
