import importlib
import os
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import likewise
from likewise.corpus import CorpusOptions
from likewise.errors import LikewiseError
from likewise.inference import encoded_files, text_pieces
from likewise.inference.encoded_files import write_part
from likewise.inference.text_pieces import list_pieces
from likewise.runs.job import JobError
from likewise.runs.progress import Stopped

WINDOW = 64


@pytest.fixture
def text(sentences, tmp_path) -> Path:
    """1,000 lines, some empty or not ASCII, without a line end at the last."""
    path = tmp_path / "text.txt"
    lines = [sentences[i % 400] if i % 7 else ["", "größer\r"][i % 2] for i in range(1000)]
    path.write_bytes("\n".join(lines).encode())
    return path


@pytest.fixture
def small(monkeypatch):
    """Pieces of 64 lines, also in the workers of a cluster: the driver cuts."""
    monkeypatch.setattr(text_pieces, "WINDOW", WINDOW)


def rows_of(folder):
    """Return all rows of the shards in the order of their names, or of a Lance table in its own."""
    if Path(folder).suffix == ".lance":
        table = importlib.import_module("lance").dataset(str(folder))
        table.validate()
        return table.to_table()
    return pa.concat_tables([parquet.read_table(path) for path in sorted(Path(folder).glob("*.parquet"))])


def lines_of(path):
    """Return the lines as `open_lines` counts them, by Python's own means."""
    return [line.removesuffix("\r") for line in path.read_bytes().decode().split("\n")]


def test_pieces_hold_every_line_once_and_in_order(text, small):
    pieces = list_pieces(str(text), CorpusOptions())
    assert len(pieces) == 16
    windows = [window for piece in pieces for window in piece.windows()]
    assert [line for window in windows for line in window] == lines_of(text)
    assert [piece.start for piece in pieces] == list(range(0, 1000, WINDOW))
    assert sum(piece.rows for piece in pieces) == 1000


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 128])
def test_pieces_end_where_the_text_ends(tmp_path, small, count, end):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(map(str, range(count))) + end)
    pieces = list_pieces(str(path), CorpusOptions())
    windows = [window for piece in pieces for window in piece.windows()]
    assert [line for window in windows for line in window] == list(map(str, range(count)))
    assert [piece.rows for piece in pieces] == [len(window) for window in windows]


def test_a_folder_of_parquet_files_and_a_compressed_text(saved_model, sentences, tmp_path):
    import gzip

    folder = tmp_path / "corpus"
    folder.mkdir()
    parquet.write_table(pa.table({"id": range(50), "text": sentences[:50]}), folder / "a.parquet", row_group_size=20)
    (folder / "b.txt.gz").write_bytes(gzip.compress("\n".join(sentences[50:70]).encode()))
    (folder / "_SUCCESS").touch()
    found = likewise.encode_file(saved_model, folder, f"{tmp_path}/out/", engine="torch", quiet=True)
    rows = rows_of(tmp_path / "out")
    assert found == (70, 32)
    assert rows["sentence"].to_pylist() == sentences[:70]
    assert rows["row"].to_pylist() == [*range(50), *range(20)]
    assert [Path(name).name for name in rows["file"].to_pylist()] == ["a.parquet"] * 50 + ["b.txt.gz"] * 20
    direct = likewise.load(saved_model, precision="fp32").encode(sentences[:70])
    np.testing.assert_allclose(np.stack(rows["embedding"].to_pylist()), direct, atol=1e-5)


def test_a_url_of_a_file_system_is_read(saved_model, text, tmp_path):
    found = likewise.encode_file(saved_model, f"file://{text}", f"{tmp_path}/out/", engine="torch", quiet=True)
    assert found.rows == 1000
    assert rows_of(tmp_path / "out")["sentence"].to_pylist() == lines_of(text)


@pytest.mark.parametrize("form", ["parquet", "lance"])
def test_a_stopped_run_keeps_its_shards(form, saved_model, text, tmp_path, small, monkeypatch, says):
    if form == "lance":
        pytest.importorskip("lance", reason="needs the extra 'lance'")
    done, out = [], tmp_path / {"parquet": "out", "lance": "out.lance"}[form]

    def counting(opens, folder, schema, piece, *rest):
        done.append(piece.name)
        if len(done) == 3:
            signal.raise_signal(signal.SIGINT)
        return write_part(opens, folder, schema, piece, *rest)

    monkeypatch.setattr(encoded_files, "write_part", counting)
    with says(Stopped):
        likewise.encode_file(saved_model, text, f"{out}/", engine="torch", quiet=True)
    assert [path.name for path in out.iterdir()] == [".unfinished"]  # nothing that looks finished
    likewise.encode_file(saved_model, text, f"{out}/", engine="torch", quiet=True)
    assert sorted(done) == [f"00000-{i:06d}.{form}" for i in range(16)]
    assert rows_of(out)["row"].to_pylist() == list(range(1000))
    assert rows_of(out)["sentence"].to_pylist() == lines_of(text)
    vectors = np.stack(rows_of(out)["embedding"].to_pylist())
    np.testing.assert_allclose(vectors, likewise.load(saved_model, precision="fp32").encode(lines_of(text)), atol=1e-5)
    text.write_bytes(text.read_bytes() + b"\nmore")
    with says(JobError):
        likewise.encode_file(saved_model, text, f"{out}/", engine="torch", quiet=True)


def test_a_lance_table_that_others_have_changed_is_not_replaced(saved_model, text, tmp_path, says):
    lance = pytest.importorskip("lance", reason="needs the extra 'lance'")
    out = tmp_path / "out.lance"
    for _ in range(2):
        likewise.encode_file(saved_model, text, out, engine="torch", overwrite=True, quiet=True)
    lance.dataset(str(out)).delete("row > 10")
    with says(LikewiseError):
        likewise.encode_file(saved_model, text, out, engine="torch", overwrite=True, quiet=True)
    (tmp_path / "empty.txt").touch()
    found = likewise.encode_file(saved_model, tmp_path / "empty.txt", tmp_path / "empty.lance", quiet=True)
    assert found == (0, 32)
    assert lance.dataset(str(tmp_path / "empty.lance")).count_rows() == 0


def test_bad_input_is_one_sentence_and_leaves_nothing(saved_model, text, tmp_path, says):
    out = tmp_path / "out"
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1 and no more")
    other = tmp_path / "other.parquet"
    parquet.write_table(pa.table({"id": [1], "body": ["a"]}), other)
    os.mkfifo(tmp_path / "pipe")
    for source in (
        tmp_path / "pipe",
        damaged,
        other,
        tmp_path / "none",
    ):
        with says(LikewiseError):
            likewise.encode_file(saved_model, source, f"{out}/", quiet=True)
    with says(LikewiseError):
        likewise.encode_file(saved_model, text, tmp_path / "vectors.npy", on="ray", quiet=True)
    assert not out.exists()


def test_hidden_files_and_what_likewise_made_are_told_and_not_encoded(tmp_path):
    for name in ("a.txt", ".hidden.txt", ".work/b.txt", "made/likewise.json", "made/c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("The cat sees.\n")
    told: list[str] = []
    (piece,) = list_pieces(str(tmp_path), CorpusOptions(), tell=told.append)
    assert Path(piece.path).name == "a.txt"
    assert told[0].startswith("4 files")
