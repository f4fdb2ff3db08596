import bz2
import gzip
import io
import os
import sys
import threading

import numpy as np
import pytest
import torch

from likewise.errors import LikewiseError
from likewise.inference import encode, encode_file, similarity, text_pieces
from likewise.runs.job import JobError


def test_encode_is_the_models_own(tiny_model, sentences):
    found = encode(tiny_model, sentences[:30], batch_size=7)
    np.testing.assert_allclose(found, tiny_model.encode(sentences[:30]), atol=1e-5)
    assert found.dtype == np.float32
    units = encode(tiny_model, sentences[:3], normalize=True)
    np.testing.assert_allclose(np.linalg.norm(units, axis=1), 1, atol=1e-6)
    assert encode(tiny_model, []).shape == (0, 32)


def test_modes_and_precision(tiny_model, sentences, says):
    tiny_model.train()
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    rough = encode(tiny_model, sentences[:5], precision="bf16")
    assert torch.rand(2).tolist() == expected
    assert tiny_model.training
    np.testing.assert_allclose(rough, encode(tiny_model, sentences[:5]), atol=0.1)
    with says(ValueError):
        encode(tiny_model, sentences[:5], precision="fp16")
    with says(ValueError):
        encode(tiny_model, sentences[:5], batch_size=0)


def test_file_row_by_row(tiny_model, sentences, tmp_path, monkeypatch, says):
    monkeypatch.setattr(text_pieces, "WINDOW", 24)
    texts = [*sentences[:50], "", "a line\u2028with a break that is none", *sentences[50:60], ""]
    (tmp_path / "in.txt").write_bytes(b"\xef\xbb\xbf" + "\n".join(texts[:30]).encode() + b"\r\n")
    with (tmp_path / "in.txt").open("ab") as file:
        file.write("\n".join(texts[30:]).encode() + b"\n")
    out = tmp_path / "vectors.npy"
    out.write_text("older")
    with says(JobError):
        encode_file(tiny_model, tmp_path / "in.txt", out, quiet=True)
    assert out.read_text() == "older"
    assert encode_file(tiny_model, tmp_path / "in.txt", out, overwrite=True, quiet=True) == (63, 32)
    rows = np.load(out, mmap_mode="r")
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, tiny_model.encode(texts), atol=1e-5)
    assert {p.name for p in tmp_path.iterdir()} == {"in.txt", "vectors.npy", ".vectors.npy.likewise"}


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".zst"])
def test_compressed_and_normalized(ending, tiny_model, sentences, tmp_path):
    raw = "\n".join(sentences[:9]).encode()  # no line break at the end
    if ending == ".zst":
        packed = pytest.importorskip("zstandard").compress(raw)
    else:
        packed = {".gz": gzip, ".bz2": bz2}[ending].compress(raw)
    path = tmp_path / f"in.txt{ending}"
    path.write_bytes(packed)
    encode_file(tiny_model, path, tmp_path / "v.npy", normalize=True)
    expected = tiny_model.encode(sentences[:9], normalize_embeddings=True)
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-5)


def test_standard_input_and_no_lines(tiny_model, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"the cat\nthe dog\n"))))
    assert encode_file(tiny_model, "-", tmp_path / "v.npy", quiet=True) == (2, 32)
    (tmp_path / "empty.txt").write_text("")
    assert encode_file(tiny_model, tmp_path / "empty.txt", tmp_path / "e.npy", quiet=True) == (0, 32)
    assert np.load(tmp_path / "e.npy").shape == (0, 32)


def test_a_long_pipe_is_read_to_its_end(tiny_model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("the cat\nthe dog\n" * 5000,))
    writer.start()
    assert encode_file(tiny_model, tmp_path / "pipe", tmp_path / "v.npy", quiet=True) == (10_000, 32)
    writer.join()
    rows = np.load(tmp_path / "v.npy")
    assert (rows[2:] == rows[:-2]).all()


def test_a_failure_leaves_nothing_new(tiny_model, tmp_path, says):
    source, out = tmp_path / "in.txt", tmp_path / "v.npy"
    source.write_bytes(b"good\nb\xe9d\n")
    out.write_text("older")
    with says(LikewiseError):
        encode_file(tiny_model, source, out, encoding="utf-8", overwrite=True, quiet=True)
    assert out.read_text() == "older"
    assert len(list(tmp_path.iterdir())) == 2
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"words " * 9999)[:40])
    with says(LikewiseError):
        encode_file(tiny_model, tmp_path / "cut.gz", out, overwrite=True, quiet=True)
    with says(LikewiseError):
        encode_file(tiny_model, tmp_path / "none.txt", out, overwrite=True, quiet=True)
    with says(JobError):
        encode_file(tiny_model, source, tmp_path / "none" / "v.npy", overwrite=True, quiet=True)


def test_similarity(tiny_model, sentences):
    a, b = tiny_model.encode(sentences[:2]).astype(np.float64)
    expected = a @ b / np.sqrt((a @ a) * (b @ b))
    first, second = sentences[:2]
    cosine = similarity(first, second, model=tiny_model)
    assert type(cosine) is float
    assert cosine == pytest.approx(expected, abs=1e-5)
    assert similarity(first, [second], model=tiny_model) == pytest.approx(np.array([[expected]]), abs=1e-5)
    assert similarity([first, second], model=tiny_model) == pytest.approx(
        np.array([[1.0, expected], [expected, 1.0]]), abs=1e-5
    )
    assert similarity(tiny_model, first, second) == pytest.approx(expected, abs=1e-5)
    with pytest.raises(TypeError):
        similarity(first, second)
    assert similarity(sentences[:3], sentences[3:5], model=tiny_model).shape == (3, 2)


def test_cosines_stay_within_one_and_what_is_no_text_is_told(tiny_model, says):
    import pandas

    assert max(similarity(text, text, model=tiny_model) for text in ("a cat", "", "the dog sees")) <= 1
    for others in (["a cat", None], pandas.DataFrame({"text": ["a cat"]})):
        with says(LikewiseError):
            similarity(["a cat"], others, model=tiny_model)


@pytest.mark.parametrize(
    ("library", "column"),
    [
        ("polars", lambda pl: pl.Series(["a cat", "the dog"], dtype=pl.Categorical)),
        ("pyarrow", lambda pa: pa.chunked_array([["a cat"], ["the dog"]], pa.large_string())),
        ("pyarrow", lambda pa: pa.array(["a cat", "the dog"]).dictionary_encode()),
        ("pandas", lambda pd: pd.Series(["a cat", "the dog"], dtype="category", index=[7, 3])),
    ],
)
def test_a_column_of_texts_is_encoded_and_what_is_missing_is_named(library, column, tiny_model):
    module = pytest.importorskip(library)
    wanted = encode(tiny_model, ["a cat", "the dog"])
    np.testing.assert_array_equal(encode(tiny_model, column(module)), wanted)
    np.testing.assert_allclose(encode(tiny_model, "a cat"), wanted[:1], atol=1e-6)
    with pytest.raises(LikewiseError, match=r"sentences\[1\], .* is not a string"):
        encode(tiny_model, ["a cat", None])


def test_a_long_job_says_how_long_before_it_starts(saved_model, sentences, tmp_path, monkeypatch, capsys):
    from likewise.inference import load, policy
    from likewise.inference.engines.engine import ENDLESS, EngineChoice
    from likewise.runs.progress import Progress

    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(sentences) + "\n")
    encode_file(saved_model, lines, tmp_path / "short.npy", engine="torch", precision="fp32")
    assert "measured" not in capsys.readouterr().err
    monkeypatch.setattr(policy, "LONG", 0.0)
    monkeypatch.setattr(policy, "seconds_each", lambda work, items: [work(items), 1.5][1])
    encode_file(saved_model, lines, tmp_path / "long.npy", engine="torch", precision="fp32")
    assert f"about 10 min for {len(sentences)} texts, measured on a few of them" in capsys.readouterr().err
    encode_file(saved_model, lines, tmp_path / "quiet.npy", engine="torch", precision="fp32", quiet=True)
    assert capsys.readouterr().err == ""
    assert np.array_equal(np.load(tmp_path / "long.npy"), np.load(tmp_path / "short.npy"))
    progress = Progress(quiet=False)
    policy.text_encoder(load(saved_model), EngineChoice("torch"), sentences, ENDLESS, progress=progress)
    assert "measured" not in capsys.readouterr().err  # the texts of a service have no end
