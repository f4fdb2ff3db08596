import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from likewise.errors import LikewiseError
from likewise.runs.progress import Progress
from likewise.searching.choose import query_writer as writer
from likewise.searching.choose.query_writer import ServerWriter, Written, round_trip, written_for

QUIET = Progress(quiet=True)


class Counting:
    """A writer that asks for the first word of a passage, and counts what it is given."""

    notice, identity, batch = "counting writes", "counting 1", 2

    def __init__(self, stops_after=None):
        self.given, self.stops_after = [], stops_after

    def write(self, texts):
        if self.stops_after is not None and len(self.given) >= self.stops_after:
            raise KeyboardInterrupt
        self.given += texts
        return [[("question", f"what is {text.split()[0]} for?")] for text in texts]


def test_what_is_written_is_kept_passage_by_passage():
    texts = [f"word{i} " + "and more " * i for i in range(7)]
    stopped = Counting(stops_after=4)
    with pytest.raises(KeyboardInterrupt):
        written_for(texts, stopped, QUIET)
    assert len(stopped.given) == 4
    goes_on = Counting()
    found = written_for([*texts, texts[0]], goes_on, QUIET)
    assert sorted([*stopped.given, *goes_on.given]) == sorted(texts)
    assert found == [Written(f"what is word{i} for?", "question", n) for n, i in enumerate([*range(7), 0])]
    other = Counting()
    other.identity = "another model"
    written_for(texts[:2], other, QUIET)
    assert sorted(other.given) == texts[:2]


def test_a_round_trip_by_hand():
    """Vectors say that passages 0 and 1 are found by their queries, and 2 by none; words are counted by BM25."""
    texts = [
        "pumps fail when cold water enters",
        "doors close by a spring",
        *(f"other text {i} here" for i in range(28)),
    ]
    asked = {
        "what makes an engine stop?": 0,  # no word in common, found by its vector
        "pumps fail cold water": 0,  # all of its words are there, and words alone find it
        "pumps that break in winter": 0,  # found by words, but in words of its own
        "how tall is a tree?": 1,  # about something else
    }
    written = [Written(text, "question", own) for text, own in asked.items()]
    eye = np.eye(30)
    known = dict(zip([*texts, "what makes an engine stop?"], [*eye, eye[0]], strict=True))

    def vectors(some):
        """Of other texts, those that are far from passage 1."""
        return np.stack([known.get(text, -eye[1]) for text in some])

    kept = round_trip(written, texts, vectors)
    assert [one.text for one in kept] == ["what makes an engine stop?", "pumps that break in winter"]
    assert round_trip([], texts, vectors) == []


@pytest.fixture
def served(monkeypatch):
    """A server of OpenAI's protocol: its address, the requests that it got, and the failures that it makes first."""
    asked, failures = [], []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._send(200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            if failures:
                return self._send(failures.pop(), {"error": {"message": "too busy"}})
            answer = "Title: Cold pumps\nKeywords: pump, winter\nQuestion: why do pumps fail?\nQuestion: how do"
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
            self._send(
                200, {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice]}
            )

        def _send(self, code, body):
            data = json.dumps(body).encode()
            self.send_response(code)
            if code == 307:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    yield f"http://127.0.0.1:{running.server_port}/v1", asked, failures
    running.shutdown()


def test_a_server_writes(served, capsys):
    url, asked, failures = served
    failures.append(503)
    found = written_for(["Pumps fail in winter.", "Doors close."], ServerWriter(url, ""), Progress())
    told = capsys.readouterr().err
    assert f"sent to {url}, and nowhere else; tiny writes the queries" in told
    assert len(asked) == 3
    assert all(one["model"] == "tiny" for one in asked)
    sent = {one["messages"][-1]["content"].splitlines()[0] for one in asked}
    assert sent == {"Pumps fail in winter.", "Doors close."}
    assert [(one.kind, one.text, one.passage) for one in found[:3]] == [
        ("title", "Cold pumps", 0),
        ("keywords", "pump, winter", 0),
        ("question", "why do pumps fail?", 0),
    ]
    assert len(found) == 6  # the last question breaks off


@pytest.mark.parametrize(
    "codes",
    [[401], [307], [500] * 9],
)
def test_a_server_that_fails(served, codes, says):
    url, asked, failures = served
    failures += codes
    with says(LikewiseError, hidden=r"(?<=127\.0\.0\.1:)\d{4,}"):
        ServerWriter(url, "tiny").write(["Pumps fail."])
    assert len(asked) == min(len(codes), 5)


def test_no_server(monkeypatch, says):
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    with says(LikewiseError, hidden=r"(?<=127\.0\.0\.1:)\d{4,}"):
        ServerWriter("http://127.0.0.1:9/v1", "")


def test_the_cache_names_what_it_holds(monkeypatch, tmp_path):
    from likewise.runs.cache_contents import cache_entries

    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path))
    written_for(["one a"], Counting(), QUIET)
    assert [(kept.kind, kept.files) for kept in cache_entries()] == [("queries", 1)]
    assert writer.FIRST == 10
