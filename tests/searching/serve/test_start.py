import logging
import os
import re
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest

import likewise
from likewise.searching.serve import ServingError
from likewise.searching.serve.start import _named


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGHUP])
def test_a_service_that_is_stopped_finishes_what_it_took(stop, saved_model, tmp_path, capfd):
    (tmp_path / "keys").write_text("secret\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address, key, answers = f"http://127.0.0.1:{port}", {"Authorization": "Bearer secret"}, []

    def ask():
        body = {"model": "tiny", "input": ["the cat " * 40] * 1000}
        answers.append(httpx.post(f"{address}/v1/embeddings", json=body, headers=key, timeout=60))

    def use_and_stop():
        end = time.monotonic() + 60
        with httpx.Client(base_url=address, headers=key) as client, ThreadPoolExecutor(1) as pool:
            while time.monotonic() < end:
                with suppress(httpx.TransportError):
                    if client.get("/ready").status_code == 200:
                        break
                time.sleep(0.05)
            asked = pool.submit(ask)
            while time.monotonic() < end and not asked.done():
                waiting = re.search(r"^likewise_waiting_texts\{.*\} (.+)$", client.get("/metrics").text, re.MULTILINE)
                if float(waiting[1]) > 0:
                    break
            os.kill(os.getpid(), stop)

    outer = signal.signal(stop, signal.SIG_DFL)  # a run under nohup ignores SIGHUP
    before = signal.getsignal(stop)
    user = threading.Thread(target=use_and_stop)
    user.start()
    log = logging.FileHandler(tmp_path / "own.log", "w")  # of the program that serves
    likewise.serve(f"tiny={saved_model}", port=port, engine="torch", api_key_file=tmp_path / "keys")
    user.join()
    after = signal.signal(stop, outer)
    log.emit(logging.makeLogRecord({"msg": "served"}))
    log.close()
    assert (tmp_path / "own.log").read_text() == "served\n"
    assert answers[0].status_code == 200
    assert len(answers[0].json()["data"]) == 1000
    assert after is before
    told = capfd.readouterr().err
    assert f"{address} serves tiny" in told
    assert told.endswith("Stopped.\n")


def test_a_port_in_use_and_other_faults_are_said_before_a_model_is_loaded(address, tmp_path, says):
    port = int(address.rpartition(":")[2])
    with says(ServingError, hidden=rf"(?<=:){port}\b"):
        likewise.serve("no-such-model", port=port)
    with says(ServingError):
        likewise.serve("no-such-model", api_key_file=tmp_path / "none")
    (tmp_path / "empty").write_text("\n\n")
    with says(ServingError):
        likewise.serve("no-such-model", api_key_file=tmp_path / "empty")
    (tmp_path / "latin").write_bytes(b"cl\xe9\n")
    with says(ServingError):
        likewise.serve("no-such-model", api_key_file=tmp_path / "latin")
    with says(likewise.LikewiseError):
        likewise.serve("no-such-model", queue=0)
    for given in ({"cors": ["example.org"]}, {"allowed_host": ["https://a.org"]}, {"allowed_host": ["a.org:80"]}):
        with says(ServingError):
            likewise.serve("no-such-model", **given)
    with says(likewise.LikewiseError):
        likewise.serve("no-such-model", port=0, index=[tmp_path / "none"])


def test_a_port_that_there_cannot_be_is_refused(says):
    with says(ServingError):
        likewise.serve("no-such-model", port=99_999)


def test_models_have_the_name_of_their_folder_or_the_one_given(tmp_path, monkeypatch, says):
    (tmp_path / "arc" / "inner").mkdir(parents=True)
    for inside, place in (("arc", "."), ("arc/inner", "..")):
        monkeypatch.chdir(tmp_path / inside)
        assert list(_named([place])) == ["arc"]
    given = [tmp_path / "runs" / "arc", "base=bundled:minilm", "bundled:minilm", "org/name"]
    assert list(_named(given)) == ["arc", "base", "minilm", "name"]
    assert _named(given)["base"] == "bundled:minilm"
    with says(ServingError):
        _named([tmp_path / "a" / "arc", tmp_path / "b" / "arc"])
    with says(ServingError):
        _named([])
