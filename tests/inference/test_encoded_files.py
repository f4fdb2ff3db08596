import numpy as np
import pytest
import torch

from likewise.errors import LikewiseError
from likewise.inference import encode_file, load, text_pieces
from likewise.inference.text_encoder import TextEncoder
from likewise.runs.cache_contents import clear_cache
from likewise.runs.job import JobError, Plan, open_job, work_of


@pytest.fixture
def windows(monkeypatch):
    """Windows of 16 lines."""
    monkeypatch.setattr(text_pieces, "WINDOW", 16)


@pytest.fixture
def encoded(monkeypatch):
    """The texts that were encoded, in the order they were; set `stop` to a number of calls after which it stops."""

    class Seen(list):
        stop = None
        calls = 0

    seen = Seen()
    vectors = TextEncoder.rows

    def spied(self, texts, *arguments, **settings):
        seen.calls += 1
        if seen.stop is not None and seen.calls > seen.stop:
            raise KeyboardInterrupt
        seen.extend(texts)
        return vectors(self, texts, *arguments, **settings)

    monkeypatch.setattr(TextEncoder, "rows", spied)
    return seen


def written(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_a_stopped_run_is_resumed(ending, windows, encoded, loaded, sentences, tmp_path, capsys):
    source, out = written(tmp_path / "in.txt", sentences[:60]), tmp_path / f"v.{ending}"
    encoded.stop = 2
    with pytest.raises(KeyboardInterrupt):
        encode_file(loaded, source, out, quiet=True)
    assert not out.exists()
    assert encoded == sentences[:32]
    encoded.clear()
    encoded.stop = None
    assert encode_file(loaded, source, out) == (60, 32)
    assert encoded == sentences[32:60]
    assert "resuming after 32 rows" in capsys.readouterr().err
    rows = np.load(out) if ending == "npy" else table(out)[1]
    np.testing.assert_allclose(rows, loaded.encode(sentences[:60]), atol=1e-5)
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", out.name, f".{out.name}.likewise", "model"}


def table(path):
    parquet = pytest.importorskip("pyarrow.parquet")
    found = parquet.read_table(path)
    assert found.column_names == ["sentence", "embedding"]
    return found["sentence"].to_pylist(), np.array(found["embedding"].to_pylist(), dtype=np.float32)


def test_what_has_changed_is_encoded_again(windows, encoded, loaded, sentences, tmp_path, capsys, says):
    source, out = written(tmp_path / "in.txt", sentences[:60]), tmp_path / "v.npy"

    def stopped(after):
        encoded.clear()
        encoded.calls, encoded.stop = 0, after
        with pytest.raises(KeyboardInterrupt):
            encode_file(loaded, source, out, quiet=True)
        encoded.clear()
        encoded.stop = None

    stopped(3)
    lines = [*sentences[:20], "another one", *sentences[21:60]]
    encode_file(loaded, written(source, lines), out)
    assert encoded == [*lines[16:32], *lines[48:]]
    assert "from line 17 on" in capsys.readouterr().err
    np.testing.assert_allclose(np.load(out), loaded.encode(lines), atol=1e-5)
    stopped(3)
    with says(JobError):
        encode_file(loaded, source, out, quiet=True, normalize=True)
    encode_file(loaded, source, out, quiet=True, normalize=True, overwrite=True)
    assert encoded == lines
    stopped(3)
    encode_file(loaded, written(source, lines[:20]), out, quiet=True)  # shorter now
    assert np.load(out).shape == (20, 32)
    np.testing.assert_allclose(np.load(out), loaded.encode(lines[:20]), atol=1e-5)


def test_a_table_holds_the_sentences(windows, loaded, sentences, tmp_path):
    lines = [*sentences[:20], "", 'with "signs", a\ttab and a caf\u00e9', ""]
    encode_file(loaded, written(tmp_path / "in.txt", lines), tmp_path / "v.parquet", quiet=True)
    found, rows = table(tmp_path / "v.parquet")
    assert found == lines
    np.testing.assert_allclose(rows, loaded.encode(lines), atol=1e-5)
    (tmp_path / "none.txt").write_text("")
    assert encode_file(loaded, tmp_path / "none.txt", tmp_path / "n.parquet", quiet=True) == (0, 32)
    assert table(tmp_path / "n.parquet")[0] == []


def test_a_model_that_goes_the_slower_way(tiny_model, sentences, tmp_path, capsys):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    static = SentenceTransformer(modules=[StaticEmbedding(tiny_model.tokenizer, embedding_dim=4)], device="cpu")
    source = written(tmp_path / "in.txt", sentences[:9])
    encode_file(static, source, tmp_path / "v.npy", engine="onnx")
    said = " ".join(capsys.readouterr().err.split())
    assert "slower encode of sentence-transformers is used: its first module is StaticEmbedding" in said
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), static.encode(sentences[:9]), atol=1e-6)


def test_where_vectors_cannot_go(loaded, sentences, tmp_path, says):
    source = written(tmp_path / "in.txt", sentences[:3])
    with says(LikewiseError):
        encode_file(loaded, source, tmp_path / "v.csv")
    with says(LikewiseError):
        encode_file(loaded, source, "-")


def test_a_resumed_run_ends_with_the_same_bytes(windows, encoded, loaded, sentences, tmp_path):
    source, lines = tmp_path / "in.txt", [*sentences[:40], *sentences[3:30]]
    encode_file(loaded, written(source, lines), tmp_path / "whole.npy", quiet=True)
    for stop in (1, 2):
        encoded.calls, encoded.stop = 0, stop
        with pytest.raises(KeyboardInterrupt):
            encode_file(loaded, source, tmp_path / "v.npy", quiet=True)
        encoded.stop = None
        encode_file(loaded, source, tmp_path / "v.npy", quiet=True)
        assert (tmp_path / "v.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_a_damaged_part_is_made_again(ending, windows, encoded, loaded, sentences, tmp_path):
    source, out = written(tmp_path / "in.txt", sentences[:60]), tmp_path / f"v.{ending}"
    encoded.stop = 3
    with pytest.raises(KeyboardInterrupt):
        encode_file(loaded, source, out, quiet=True)
    encoded.clear()
    encoded.stop = None
    for part in (work_of(out, "file") / "blocks").glob("000001*"):
        part.write_bytes(part.read_bytes()[:-3])
    encode_file(loaded, source, out, quiet=True)
    assert encoded == [*sentences[16:32], *sentences[48:60]]
    rows = np.load(out) if ending == "npy" else table(out)[1]
    np.testing.assert_allclose(rows, loaded.encode(sentences[:60]), atol=1e-5)


def test_a_second_job_on_a_file_is_refused_at_once(encoded, loaded, sentences, tmp_path, says):
    source, out = written(tmp_path / "in.txt", sentences[:9]), tmp_path / "v.npy"
    with open_job(out, Plan("encode", {}), kind="file"), says(JobError):
        encode_file(loaded, source, out, quiet=True)
    assert not encoded


def test_a_signal_stops_it_after_a_window(windows, encoded, loaded, sentences, tmp_path, monkeypatch, says):
    import os
    import signal

    source, out = written(tmp_path / "in.txt", sentences[:60]), tmp_path / "v.npy"
    vectors = TextEncoder.rows

    def interrupted(self, *arguments, **settings):
        os.kill(os.getpid(), signal.SIGINT)
        return vectors(self, *arguments, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(TextEncoder, "rows", interrupted)
        with says(KeyboardInterrupt):
            encode_file(loaded, source, out, quiet=True)
    encoded.clear()
    encode_file(loaded, source, out, quiet=True)
    assert encoded == sentences[16:60]


def test_a_run_is_resumed_where_weights_are_missing_in_the_file(windows, encoded, tiny_base, sentences, tmp_path):
    """The pooler of this plain folder is not in its file: it starts at random, whatever was drawn before."""
    source, out = written(tmp_path / "in.txt", sentences[:40]), tmp_path / "v.npy"
    encoded.stop = 2
    torch.manual_seed(1)
    with pytest.raises(KeyboardInterrupt):
        encode_file(str(tiny_base), source, out, quiet=True)
    encoded.clear()
    encoded.stop = None
    torch.manual_seed(2)
    before = torch.get_rng_state()
    model = load(tiny_base)
    assert torch.equal(torch.get_rng_state(), before)
    encode_file(model, source, out, quiet=True)
    assert encoded == sentences[32:40]


def test_vectors_that_are_not_finite_are_refused(loaded, sentences, tmp_path, says):
    with torch.no_grad():
        loaded[0].auto_model.embeddings.word_embeddings.weight.fill_(float("nan"))
    with says(LikewiseError):
        encode_file(loaded, written(tmp_path / "in.txt", sentences[:3]), tmp_path / "v.npy", quiet=True)
    assert not (tmp_path / "v.npy").exists()


def test_the_next_night_s_run_does_without_the_cache(loaded, sentences, tmp_path, monkeypatch):
    """What promises.md says of the cache: everything in it can be made again, and no result depends on it."""
    source, out = written(tmp_path / "in.txt", sentences[:9]), tmp_path / "v.npy"
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    encode_file(loaded, source, out, quiet=True)
    before = out.read_bytes()
    clear_cache()
    written(tmp_path / "in.txt", sentences[:8])
    assert encode_file(loaded, source, out, quiet=True) == (8, 32)
    written(tmp_path / "in.txt", sentences[:9])
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "another"))
    assert encode_file(loaded, source, out, quiet=True) == (9, 32)
    assert out.read_bytes() == before
