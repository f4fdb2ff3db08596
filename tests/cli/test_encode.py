import json

import numpy as np


def test_file_to_file(cli, tiny_model, sentences, tmp_path):
    tiny_model.save(str(tmp_path / "model"))
    (tmp_path / "in.txt").write_text("\n".join(sentences[:5]) + "\n")
    out = tmp_path / "v.npy"
    wanted = [
        str(tmp_path / "model"),
        str(tmp_path / "in.txt"),
        "--out",
        str(out),
        "--normalize",
        "--precision",
        "fp32",
    ]
    result = cli("encode", *wanted)
    assert result.exit_code == 0, result.output
    assert "5 x 32, float32" in result.stderr
    expected = tiny_model.encode(sentences[:5], normalize_embeddings=True)
    np.testing.assert_allclose(np.load(out), expected, atol=1e-5)
    result = cli("encode", *[str(tmp_path / "model"), str(tmp_path / "none.txt")])
    assert result.exit_code == 2
    assert "none.txt" in result.stderr


def test_the_engine_is_told_and_one_that_does_not_exist_is_refused(cli, tiny_model, sentences, tmp_path):
    tiny_model.save(str(tmp_path / "model"))
    (tmp_path / "in.txt").write_text("\n".join(sentences[:3]) + "\n")
    wanted = [tmp_path / "model", tmp_path / "in.txt", "--out", tmp_path / "v.npy", "--engine", "torch", "--precision"]
    result = cli("encode", *wanted, "fp32")
    assert result.exit_code == 0, result.output
    assert "engine: torch fp32" in result.stderr
    result = cli("encode", *wanted, "int8")
    assert result.exit_code == 2
    assert "torch has no int8" in result.stderr


def test_auto_follows_the_processor_and_says_how_near_the_vectors_are(
    cli, any_processor, tiny_model, sentences, tmp_path
):
    tiny_model.save(str(tmp_path / "model"))
    (tmp_path / "in.txt").write_text("\n".join(sentences[:5]) + "\n")
    result = cli("encode", *[str(tmp_path / "model"), str(tmp_path / "in.txt"), "--out", str(tmp_path / "v.npy")])
    assert result.exit_code == 0, result.output
    bf16 = "bf16" in any_processor
    assert ("engine: torch bf16, mean cosine" if bf16 else "engine: torch fp32") in result.stderr
    found, expected = np.load(tmp_path / "v.npy"), tiny_model.encode(sentences[:5])
    np.testing.assert_allclose(found, expected, atol=0.05 if bf16 else 1e-5)
    assert bool(np.abs(found - expected).max() > 1e-5) is bf16


def test_rows_are_read_by_their_field_and_tables_are_refused(cli, tiny_model, sentences, tmp_path):
    tiny_model.save(str(tmp_path / "model"))
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in sentences[:3]))
    result = cli(
        "encode", tmp_path / "model", tmp_path / "in.jsonl", "--out", tmp_path / "v.npy", "--precision", "fp32"
    )
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), tiny_model.encode(sentences[:3]), atol=1e-5)
    for name in ("in.csv", "in.json", "in.pdf"):
        (tmp_path / name).write_text("a,b\n1,2\n")
        result = cli("encode", tmp_path / "model", tmp_path / name, "--out", tmp_path / "w.npy")
        assert result.exit_code == 2
        assert name in result.stderr
        assert not (tmp_path / "w.npy").exists()
