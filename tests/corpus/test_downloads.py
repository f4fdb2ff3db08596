import hashlib
import inspect
import json
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from likewise.corpus import downloads
from likewise.corpus.downloads import LOCK, DownloadError, data_folder, get_data
from likewise.corpus.hub_files import DATASETS
from likewise.evaluation import find_data
from likewise.runs.cache import kept_in_cache

from .test_hub_files import tar


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
                content = hub.files.get(self.path)
                hub.asked.append(f"{self.command} {self.path}")
                if content is None:
                    self.send_response(404)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: hub.cut])

            def do_HEAD(self):
                content = hub.files.get(self.path)
                self.send_response(302 if content else 404)
                if hub.states and content:
                    self.send_header("X-Linked-Etag", f'"{hub.states}"')
                self.end_headers()

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
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    return hub


def command(hub, home, *arguments, size=None):
    environment = {
        "HF_ENDPOINT": hub.url if hub else "http://127.0.0.1:9",
        "PATH": "",
        "PYTHONPATH": ":".join(sys.path),
        "HOME": str(home),
    }
    code = "import sys\nsys.modules['httpx'] = sys.modules['huggingface_hub'] = None\n"
    if size is not None:
        code += (
            "from dataclasses import replace\nfrom likewise.corpus import downloads\nDATASETS = downloads.DATASETS\n"
        )
        code += f"{inspect.getsource(small)}\ndownloads.DATASETS = small({size})\n"
    code += "from likewise.cli import main; main()"
    call = [sys.executable, "-c", code, "data", "get", *map(str, arguments)]
    return subprocess.run(call, env=environment, capture_output=True, text=True, timeout=120)


def test_from_the_hub_into_the_layout_with_a_lock_that_later_fetches_are_held_against(hub, archive, tmp_path):
    (file,) = DATASETS["sts"]
    hub.put(file, archive.read_bytes())
    out, home = tmp_path / "data", tmp_path / "home"
    size = archive.stat().st_size
    first = command(hub, home, "sts", "--out", out, size=size)
    assert first.returncode == 0, first.stderr
    assert (out / "senteval/STS/a.txt").read_text() == "STS"
    assert not (out / "senteval/MR").exists()
    assert "is recorded for the next time" in first.stdout
    lock = json.loads((out / LOCK).read_text())
    assert lock[file.key]["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    fetched = [call for call in hub.asked if call.startswith("GET") and "/resolve/" in call]
    assert fetched == [f"GET /datasets/{file.repo}/resolve/{file.revision}/senteval.tar"]
    # The other tasks are in the same archive: it is not fetched a second time, and is held against the lock.
    second = command(None, home, "transfer", "--out", out, size=size)
    assert second.returncode == 0, second.stderr
    assert "the known one" in second.stdout
    assert (out / "senteval/MRPC/a.txt").exists()
    assert not [path for path in out.iterdir() if path.name.startswith(".")]
    # A pinned file never changes; another one under its name is refused, and what is there stays.
    (tmp_path / "other").mkdir()
    other = tar(tmp_path / "other" / "senteval.tar", {"STS/a.txt": b"other", "SICK/a.txt": b"other"})
    third = command(hub, home, "sts", "--out", out, "--from", other, "--overwrite", size=size)
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


def test_a_copy_from_elsewhere_takes_the_hub_s_place_and_what_is_there_stays(archive, served, sized, tmp_path):
    out = tmp_path / "data"
    (first,) = get_data("sts", out, files={"senteval.tar": archive}).values()
    assert first == "recorded"
    (out / "senteval/STS/a.txt").write_text("mine")
    (second,) = get_data("sts", out).values()
    assert second == "there"
    (third,) = get_data("sts", out, files={"senteval.tar": archive}, overwrite=True).values()
    assert third == "checked"
    assert (out / "senteval/STS/a.txt").read_text() == "STS"
    assert served.asked == []


def test_a_small_fake_is_refused_and_not_kept(served, tmp_path):
    (file,) = DATASETS["wiki1m"]
    served.put(file, b"<html>Sign in to go on</html>".ljust(244))
    copy = tmp_path / file.name
    copy.write_bytes(b"A fake.\n" * 30)
    for files in (None, {file.name: copy}):
        with pytest.raises(DownloadError, match=r"it has 0\.00024\d? MB instead of about 120"):
            get_data("wiki1m", tmp_path / "data", files=files)
    assert not (tmp_path / "data").exists()
    assert copy.exists()
    assert sum(kept.files for kept in kept_in_cache()) == 0


@pytest.mark.parametrize("content", [b"<!DOCTYPE html><p>Sign in", b"\xff\xfe\x00 no text at all", b"\0" * 25])
def test_a_fake_of_the_right_size_is_refused(served, tmp_path, monkeypatch, content):
    monkeypatch.setattr(downloads, "DATASETS", small(len(content)))
    served.put(DATASETS["wiki1m"][0], content)
    with pytest.raises(DownloadError, match=r"wiki1m_for_simcse\.txt: it is not (plain|UTF-8) text"):
        get_data("wiki1m", tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []
    assert sum(kept.files for kept in kept_in_cache()) == 0


def test_the_hub_is_held_to_the_checksum_of_the_first_fetch(archive, served, sized, tmp_path):
    (file,) = DATASETS["sts"]
    served.put(file, archive.read_bytes())
    (first,) = get_data("sts", tmp_path / "data").values()
    assert first == "recorded"
    (again,) = get_data("sts", tmp_path / "data", overwrite=True).values()
    assert again == "checked"
    assert len(served.asked) == 1  # the cache had it
    shutil.rmtree(tmp_path / "cache")
    served.put(file, archive.read_bytes().replace(b"SICK", b"SACK"))
    with pytest.raises(DownloadError, match="hash"):
        get_data("sts", tmp_path / "data", overwrite=True)
    assert (tmp_path / "data/senteval/STS/a.txt").read_text() == "STS"
    assert sum(kept.files for kept in kept_in_cache()) == 0


def test_a_file_that_is_not_the_one_that_the_hub_states_is_refused(archive, served, sized, tmp_path):
    served.put(DATASETS["sts"][0], archive.read_bytes())
    served.states = "0" * 64
    with pytest.raises(DownloadError, match="hash"):
        get_data("sts", tmp_path / "data")
    assert not (tmp_path / "data").exists()
    served.states = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert list(get_data("sts", tmp_path / "data").values()) == ["recorded"]


def test_a_download_that_is_cut_short_is_not_kept(archive, served, sized, tmp_path):
    served.put(DATASETS["sts"][0], archive.read_bytes())
    served.cut = 3000
    with pytest.raises(DownloadError, match="could not be fetched"):
        get_data("sts", tmp_path / "data")
    assert sum(kept.files for kept in kept_in_cache()) == 0
    served.cut = None
    assert list(get_data("sts", tmp_path / "data").values()) == ["recorded"]


def test_text_is_taken_as_it_is(served, tmp_path, monkeypatch):
    content = b"One.\r\nTwo.\n"
    monkeypatch.setattr(downloads, "DATASETS", small(len(content)))
    served.put(DATASETS["wiki1m"][0], content)
    get_data("wiki1m", tmp_path / "data")
    assert (tmp_path / "data" / "wiki1m_for_simcse.txt").read_bytes() == b"One.\r\nTwo.\n"


def test_bad_input_is_refused(archive, tmp_path, monkeypatch):
    with pytest.raises(DownloadError, match="sts, transfer, wiki1m, nli"):
        get_data("stsb", tmp_path)
    with pytest.raises(DownloadError, match=r"senteval\.tar"):
        get_data("sts", tmp_path, files={"sts.zip": archive})
    with pytest.raises(DownloadError, match="no file"):
        get_data("sts", tmp_path, files={"senteval.tar": tmp_path / "missing.tar"})
    archive.write_bytes(b"not an archive")
    monkeypatch.setattr(downloads, "DATASETS", small(14))
    with pytest.raises(DownloadError, match=r"senteval\.tar: it is not a complete archive"):
        get_data("sts", tmp_path / "data", files={"senteval.tar": archive})
    (tmp_path / "data" / LOCK).write_text("{")
    with pytest.raises(DownloadError, match="mend it"):
        get_data("sts", tmp_path / "data", files={"senteval.tar": archive})


def test_evaluation_looks_where_it_is_put(archive, sized, tmp_path, monkeypatch):
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
