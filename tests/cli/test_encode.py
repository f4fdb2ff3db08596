import numpy as np
import typer
from typer.testing import CliRunner

from likewise.cli.encode import encode


def test_file_to_file(tiny_model, sentences, tmp_path):
    tiny_model.save(str(tmp_path / "model"))
    (tmp_path / "in.txt").write_text("\n".join(sentences[:5]) + "\n")
    app = typer.Typer()
    app.command()(encode)
    out = tmp_path / "v.npy"
    wanted = [
        str(tmp_path / "model"),
        str(tmp_path / "in.txt"),
        "--out",
        str(out),
        "--normalize",
        "--batch-size",
        "2",
    ]
    result = CliRunner().invoke(app, wanted)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{out}: 5 x 32, float32, length 1\n"
    expected = tiny_model.encode(sentences[:5], normalize_embeddings=True)
    np.testing.assert_allclose(np.load(out), expected, atol=1e-5)
    result = CliRunner().invoke(app, [str(tmp_path / "model"), str(tmp_path / "none.txt")])
    assert result.exit_code == 2
    assert "none.txt" in result.stderr
