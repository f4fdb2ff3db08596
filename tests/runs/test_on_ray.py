"""One local cluster for all that runs on one: to start it takes longer than what it does here."""

import os
import re
import signal
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import likewise
from likewise.errors import LikewiseError
from likewise.inference import encoded_files, text_pieces
from likewise.inference.encoded_files import write_part
from likewise.runs.on_ray import ClusterError, begun_on_ray, check_versions, cluster
from likewise.runs.releases import versions


@pytest.fixture(scope="module", autouse=True)
def ray():
    return pytest.importorskip("ray", reason="needs the extra 'ray'")


@pytest.fixture(scope="module")
def local(ray):
    """A cluster of two workers, which what is called in it uses and does not stop."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(likewise.__file__).parents[1]))
        with cluster("ray", 2) as workers:
            ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
            yield workers
    assert not ray.is_initialized()


def rows_of(folder):
    """Return all rows of the shards in the order of their names."""
    return pa.concat_tables([parquet.read_table(path) for path in sorted(Path(folder).glob("*.parquet"))])


def test_encoding_gives_the_rows_of_one_process(local, ray, saved_model, corpus_file, tmp_path, monkeypatch):
    monkeypatch.setattr(text_pieces, "WINDOW", 64)
    found = [
        likewise.encode_file(
            saved_model, corpus_file, f"{tmp_path}/{on}/", engine="torch", on=on, workers=1 if on else None, quiet=True
        )
        for on in (None, "ray")
    ]
    assert found == [(400, 32)] * 2
    here, there = rows_of(tmp_path / "None"), rows_of(tmp_path / "ray")
    for name in ("file", "row", "sentence"):
        assert there[name].to_pylist() == here[name].to_pylist()
    vectors = [np.stack(rows["embedding"].to_pylist()) for rows in (here, there)]
    np.testing.assert_allclose(vectors[1], vectors[0], atol=1e-6)
    assert ray.is_initialized()


def test_a_lance_table_of_workers_is_in_the_order_of_the_text(local, saved_model, corpus_file, tmp_path, monkeypatch):
    lance = pytest.importorskip("lance", reason="needs the extra 'lance'")
    monkeypatch.setattr(text_pieces, "WINDOW", 64)
    out = tmp_path / "out.lance"
    likewise.encode_file(saved_model, corpus_file, out, engine="torch", on="ray", workers=2, quiet=True)
    rows = lance.dataset(str(out)).to_table(columns=["row", "sentence"])
    assert rows["sentence"].to_pylist() == corpus_file.read_text().splitlines()
    assert rows["row"].to_pylist() == list(range(400))


def test_an_index_has_the_passages_and_vectors_of_one_process(local, notes, saved_model, tmp_path):
    found = [
        likewise.index(
            notes, model=saved_model, out=tmp_path / f"{on}.index", on=on, workers=1 if on else None, quiet=True
        )
        for on in (None, "ray")
    ]
    done = [(len(one), one.encoded, one.added, one.removed, one.skipped) for one in found]
    assert done[0] == done[1]
    assert done[0][1] == 42
    tables = [likewise.Index(tmp_path / f"{on}.index").table._select(["text", "vector"]) for on in (None, "ray")]
    here, there = (dict(zip(t["text"].to_pylist(), t["vector"].to_pylist(), strict=True)) for t in tables)
    assert here.keys() == there.keys()
    np.testing.assert_allclose([there[text] for text in here], list(here.values()), atol=1e-6)


def killed_once(mark, opens, folder, schema, piece):
    """Work whose process dies in the middle of a piece, the first time that the piece is done."""
    if piece.start == 128 and not Path(mark).exists():
        Path(mark).touch()
        (folder / ".half.part").write_bytes(b"PAR1")
        os.kill(os.getpid(), signal.SIGKILL)
    return write_part(opens, folder, schema, piece)


def test_what_a_killed_worker_had_under_way_is_done_again(local, saved_model, corpus_file, tmp_path, monkeypatch):
    monkeypatch.setattr(text_pieces, "WINDOW", 64)
    monkeypatch.setattr(encoded_files, "write_part", partial(killed_once, str(tmp_path / "killed")))
    out = tmp_path / "out"
    assert likewise.encode_file(
        saved_model, corpus_file, f"{out}/", engine="torch", on="ray", workers=1, quiet=True
    ) == (400, 32)
    assert (tmp_path / "killed").exists()
    rows = rows_of(out)
    assert rows["sentence"].to_pylist() == corpus_file.read_text().splitlines()
    assert rows["row"].to_pylist() == list(range(400))
    assert sorted(path.name for path in out.iterdir() if path.suffix != ".parquet") == ["likewise.json"]


def fails():
    """Stand for the work of a worker whose file is gone."""
    raise LikewiseError("gone.txt cannot be read")


def test_what_a_worker_cannot_read_is_one_sentence(local, says):
    wait = begun_on_ray(fails)
    with says(LikewiseError):
        wait()


def test_a_cluster_that_cannot_be_used_is_one_sentence(ray, monkeypatch, says):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with says(ClusterError), cluster("ray://127.0.0.1:9"):
        pass
    with monkeypatch.context() as patched:
        patched.setenv("RAY_ADDRESS", "127.0.0.1:9")
        with says(ClusterError), cluster("ray"):
            pass
    with says(ClusterError), cluster("spark"):
        pass
    with says(ClusterError), cluster("ray", 0):
        pass
    monkeypatch.setattr("likewise.errors.find_spec", lambda name: None)
    with says(LikewiseError), cluster("ray"):
        pass


def test_other_versions_on_a_machine_are_refused(says):
    check_versions("10.0.0.2", versions())
    with says(ClusterError, hidden=re.escape(versions()["torch"])):
        check_versions("10.0.0.2", versions() | {"torch": "1.0"})


def test_workers_without_a_cluster_are_refused(saved_model, corpus_file, tmp_path, says):
    for on, workers in ((None, 2), ("ray", 0)):
        with says(ClusterError):
            likewise.encode_file(saved_model, corpus_file, tmp_path / "x.npy", on=on, workers=workers)
    assert not list(tmp_path.glob("x.npy*"))
