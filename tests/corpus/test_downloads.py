import hashlib
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from likewise.corpus import downloads
from likewise.corpus.downloads import LOCK, DownloadError, data_folder, get_data
from likewise.corpus.hub_sources import DATASETS
from likewise.evaluation import find_data

from .test_unpacking import tar


class Hub:
    """A local stand-in of the Hugging Face hub: answers as it does for a file of a dataset at a commit."""

    def __init__(self):
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self, body):
                content = hub.files.get(self.path)
                hub.asked.append(f"{self.command} {self.path}")
                if content is None:
                    self.send_response(404)
                    self.send_header("X-Error-Code", "EntryNotFound")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
                self.send_response(206 if start else 200)
                self.send_header("X-Repo-Commit", self.path.split("/resolve/")[1].partition("/")[0])
                self.send_header("X-Linked-Etag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("X-Linked-Size", str(len(content)))
                self.send_header("Content-Length", str(len(content) - start))
                self.end_headers()
                if body:
                    self.wfile.write(content[start:])

            def do_HEAD(self):
                self._answer(False)

            def do_GET(self):
                self._answer(True)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def put(self, file, content):
        self.files[f"/datasets/{file.repo}/resolve/{file.revision}/{file.path}"] = content


@pytest.fixture
def hub():
    found = Hub()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def archive(tmp_path):
    members = {f"{top}/a.txt": top.encode() for top in "STS SICK MR CR SUBJ MPQA SST TREC MRPC".split()}
    return tar(tmp_path / "senteval.tar", members)


def command(hub, home, *arguments):
    environment = {
        "HF_ENDPOINT": hub.url if hub else "http://127.0.0.1:9",
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_ETAG_TIMEOUT": "5",
        "PATH": "",
        "PYTHONPATH": ":".join(sys.path),
        "HOME": str(home),
    }
    code = "from likewise.cli import main; main()"
    call = [sys.executable, "-c", code, "data", "get", *map(str, arguments)]
    return subprocess.run(call, env=environment, capture_output=True, text=True, timeout=120)


def test_from_the_hub_into_the_layout_with_a_lock_that_later_fetches_are_held_against(hub, archive, tmp_path):
    (file,) = DATASETS["sts"].files
    hub.put(file, archive.read_bytes())
    out, home = tmp_path / "data", tmp_path / "home"
    first = command(hub, home, "sts", "--out", out)
    assert first.returncode == 0, first.stderr
    assert (out / "senteval/STS/a.txt").read_text() == "STS"
    assert not (out / "senteval/MR").exists()
    assert "written down" in first.stdout
    lock = json.loads((out / LOCK).read_text())
    assert lock[file.key]["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    fetched = [call for call in hub.asked if call.startswith("GET") and "/resolve/" in call]
    assert fetched == [f"GET /datasets/{file.repo}/resolve/{file.revision}/senteval.tar"]
    # The other tasks are in the same archive: it is not fetched a second time, and is held against the lock.
    second = command(None, home, "transfer", "--out", out)
    assert second.returncode == 0, second.stderr
    assert "the known one" in second.stdout
    assert (out / "senteval/MRPC/a.txt").exists()
    assert not [path for path in out.iterdir() if path.name.startswith(".")]
    # A pinned file never changes; another one under its name is refused, and what is there stays.
    (tmp_path / "other").mkdir()
    other = tar(tmp_path / "other" / "senteval.tar", {"STS/a.txt": b"other", "SICK/a.txt": b"other"})
    third = command(hub, home, "sts", "--out", out, "--from", other, "--overwrite")
    assert third.returncode == 2
    assert "SHA-256" in third.stderr
    assert (out / "senteval/STS/a.txt").read_text() == "STS"


def test_without_the_hub_it_says_what_to_put_where(tmp_path):
    done = command(None, tmp_path / "home", "nli", "--out", tmp_path / "data")
    assert done.returncode == 2
    for part in (
        "all-nli/resolve/323b5a8b4c887a41d9d0041a2262742c902af0cd/pair-class/train-00000-of-00001.parquet",
        "--from nli_for_simcse.csv",
        str(tmp_path / "data/senteval/AllNLI/labels.train"),
    ):
        assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_copy_from_elsewhere_takes_the_hub_s_place_and_what_is_there_stays(archive, tmp_path):
    def refuse(file):
        raise AssertionError("the hub was asked")

    out = tmp_path / "data"
    (first,) = get_data("sts", out, files={"senteval.tar": archive}, download=refuse)
    assert first.state == "recorded"
    (out / "senteval/STS/a.txt").write_text("mine")
    (second,) = get_data("sts", out, download=refuse)
    assert second.state == "there"
    (third,) = get_data("sts", out, files={"senteval.tar": archive}, overwrite=True, download=refuse)
    assert third.state == "checked"
    assert (out / "senteval/STS/a.txt").read_text() == "STS"


def test_a_file_that_is_not_what_the_hub_s_client_calls_it_is_refused(archive, tmp_path):
    # In the client's cache a large file is named by its checksum, and what is handed out is a link to it.
    blob = tmp_path / ("0" * 64)
    archive.rename(blob)
    archive.symlink_to(blob)
    with pytest.raises(DownloadError, match="the hub says 0000"):
        get_data("sts", tmp_path / "data", download=lambda file: archive)
    assert not (tmp_path / "data" / LOCK).exists()
    assert not (tmp_path / "data" / "senteval").exists()


def test_text_is_taken_as_it_is(tmp_path):
    (tmp_path / "wiki1m_for_simcse.txt").write_bytes(b"One.\r\nTwo.\n")
    (found,) = get_data("wiki1m", tmp_path / "data", download=lambda file: tmp_path / file.path)
    assert found.made == (tmp_path / "data" / "wiki1m_for_simcse.txt",)
    assert found.made[0].read_bytes() == b"One.\r\nTwo.\n"


def test_bad_input_is_told(archive, tmp_path):
    with pytest.raises(DownloadError, match="sts, transfer, wiki1m, nli"):
        get_data("stsb", tmp_path)
    with pytest.raises(DownloadError, match=r"senteval\.tar"):
        get_data("sts", tmp_path, files={"sts.zip": archive})
    with pytest.raises(DownloadError, match="no file"):
        get_data("sts", tmp_path, files={"senteval.tar": tmp_path / "missing.tar"})
    archive.write_bytes(b"not an archive")
    with pytest.raises(DownloadError, match=r"senteval\.tar: it is no whole archive"):
        get_data("sts", tmp_path / "data", files={"senteval.tar": archive})
    (tmp_path / "data" / LOCK).write_text("{")
    with pytest.raises(DownloadError, match="mend it"):
        get_data("sts", tmp_path / "data", files={"senteval.tar": archive})


def test_evaluation_looks_where_it_is_put(archive, tmp_path, monkeypatch):
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert data_folder() == tmp_path / "home/.cache/likewise/data"
    get_data("sts", files={"senteval.tar": archive})
    assert find_data() == downloads.data_folder() / "senteval"
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "elsewhere"))
    assert data_folder() == tmp_path / "elsewhere"
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "elsewhere" / "senteval"))
    assert data_folder() == tmp_path / "elsewhere"
