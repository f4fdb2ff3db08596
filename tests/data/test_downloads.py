import hashlib
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from likewise.data import downloads
from likewise.data.downloads import DATASETS, DownloadError, get_data
from likewise.evaluation import find_data
from likewise.runs.cache import data_folder

from .test_unpacked import tar


class Hub:
    """A local stand-in of the Hugging Face hub: answers as it does for a file of a dataset at a commit."""

    def __init__(self):
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.cut: int | None = None
        self.states = ""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                if "/resolve/" in self.path:
                    hub.asked.append(f"{self.command} {self.path}")
                self.do_HEAD(hub.cut)

            def do_HEAD(self, cut=0):
                content = hub.files.get(self.path)
                self.send_response(200 if content is not None else 404)
                self.send_header("Content-Length", str(len(content or b"")))
                if content is not None:
                    self.send_header("X-Repo-Commit", self.path.split("/")[5])
                    self.send_header("ETag", f'"{hub.states or hashlib.sha256(content).hexdigest()}"')
                self.end_headers()
                self.wfile.write((content or b"")[:cut])

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


def small(size):
    """The table of data sets, its files as small as those of the tests."""
    return {name: tuple(replace(file, megabytes=size / 1e6) for file in files) for name, files in DATASETS.items()}


@pytest.fixture
def sized(archive, monkeypatch):
    """The hub's table with the size of the archive."""
    monkeypatch.setattr(downloads, "DATASETS", small(archive.stat().st_size))


@pytest.fixture
def served(hub, tmp_path, monkeypatch):
    """The hub for this process, with a cache of its own."""
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    return hub


def cached_files(folder):
    return [path for path in (folder / "hub").rglob("*") if path.is_file() and "blobs" in path.parts]


def test_from_the_hub_into_the_layout(served, archive, sized, tmp_path):
    (file,) = DATASETS["sts"]
    served.put(file, archive.read_bytes())
    out = tmp_path / "data"
    assert list(get_data("sts", out).values()) == ["checked"]
    assert (out / "senteval/STS/a.txt").read_text() == "STS"
    assert not (out / "senteval/MR").exists()
    assert served.asked == [f"GET /datasets/{file.repo}/resolve/{file.revision}/senteval.tar"]
    # The other tasks are in the same archive: it is not fetched a second time.
    assert list(get_data("transfer", out).values()) == ["checked"]
    assert len(served.asked) == 1
    assert (out / "senteval/MRPC/a.txt").exists()
    assert not [path for path in out.iterdir() if path.name.startswith(".")]


def test_without_the_hub_it_says_what_to_put_where(served, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(time, "sleep", lambda _: None)  # the hub's client waits between its five attempts
    with pytest.raises(DownloadError) as refused:
        get_data("nli", tmp_path / "data")
    for part in (
        "all-nli/resolve/323b5a8b4c887a41d9d0041a2262742c902af0cd/pair-class/train-00000-of-00001.parquet",
        "--from nli_for_simcse.csv",
        str(tmp_path / "data/senteval/AllNLI/labels.train"),
    ):
        assert part in str(refused.value)
    assert not (tmp_path / "data").exists()


def test_a_copy_from_elsewhere_takes_the_hub_s_place_and_what_is_there_stays(archive, served, sized, tmp_path):
    out = tmp_path / "data"
    assert list(get_data("sts", out, files={"senteval.tar": archive}).values()) == ["copied"]
    (out / "senteval/STS/a.txt").write_text("mine")
    assert list(get_data("sts", out).values()) == ["there"]
    assert list(get_data("sts", out, files={"senteval.tar": archive}, overwrite=True).values()) == ["copied"]
    assert (out / "senteval/STS/a.txt").read_text() == "STS"
    assert served.asked == []


def test_a_small_fake_is_refused_and_not_kept(served, tmp_path, says):
    (file,) = DATASETS["wiki1m"]
    served.put(file, b"<html>Sign in to go on</html>".ljust(244))
    copy = tmp_path / file.name
    copy.write_bytes(b"A fake.\n" * 30)
    for files in (None, {file.name: copy}):
        with says(DownloadError):
            get_data("wiki1m", tmp_path / "data", files=files)
    assert not (tmp_path / "data").exists()
    assert copy.exists()
    assert cached_files(tmp_path) == []


@pytest.mark.parametrize("content", [b"<!DOCTYPE html><p>Sign in", b"\xff\xfe\x00 no text at all", b"\0" * 25])
def test_a_fake_of_the_right_size_is_refused(served, tmp_path, monkeypatch, content, says):
    monkeypatch.setattr(downloads, "DATASETS", small(len(content)))
    served.put(DATASETS["wiki1m"][0], content)
    with says(DownloadError):
        get_data("wiki1m", tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []
    assert cached_files(tmp_path) == []


def test_a_file_that_is_not_the_one_that_the_hub_states_is_refused(archive, served, sized, tmp_path, says):
    served.put(DATASETS["sts"][0], archive.read_bytes())
    served.states = "0" * 64
    with says(DownloadError, hidden=r"SHA-256 is \w+"):
        get_data("sts", tmp_path / "data")
    assert not (tmp_path / "data").exists()
    served.states = ""
    assert list(get_data("sts", tmp_path / "data").values()) == ["checked"]


def test_a_download_that_is_cut_short_is_not_kept(archive, served, sized, tmp_path, says):
    served.put(DATASETS["sts"][0], archive.read_bytes())
    served.cut = 3000
    with says(DownloadError):
        get_data("sts", tmp_path / "data")
    assert cached_files(tmp_path) == []
    served.cut = None
    assert list(get_data("sts", tmp_path / "data").values()) == ["checked"]


def test_text_is_taken_as_it_is(served, tmp_path, monkeypatch):
    content = b"One.\r\nTwo.\n"
    monkeypatch.setattr(downloads, "DATASETS", small(len(content)))
    served.put(DATASETS["wiki1m"][0], content)
    get_data("wiki1m", tmp_path / "data")
    assert (tmp_path / "data" / "wiki1m_for_simcse.txt").read_bytes() == b"One.\r\nTwo.\n"


def test_bad_input_is_refused(archive, tmp_path, monkeypatch, says):
    with says(DownloadError):
        get_data("stsb", tmp_path)
    with says(DownloadError):
        get_data("sts", tmp_path, files={"sts.zip": archive})
    with says(DownloadError):
        get_data("sts", tmp_path, files={"senteval.tar": tmp_path / "missing.tar"})
    archive.write_bytes(b"not an archive")
    monkeypatch.setattr(downloads, "DATASETS", small(14))
    with says(DownloadError):
        get_data("sts", tmp_path / "data", files={"senteval.tar": archive})


def test_evaluation_looks_where_it_is_put(archive, sized, tmp_path, monkeypatch):
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache/data"
    monkeypatch.delenv("LIKEWISE_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert data_folder() == tmp_path / "home/.cache/likewise/data"
    get_data("sts", files={"senteval.tar": archive})
    assert find_data() == data_folder() / "senteval"
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "elsewhere"))
    assert data_folder() == tmp_path / "elsewhere"
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "elsewhere" / "senteval"))
    assert data_folder() == tmp_path / "elsewhere"
