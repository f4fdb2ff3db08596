import typer
from typer.testing import CliRunner

from likewise.cli.similarity import similarity
from likewise.inference import similarity as cosines


def test_four_decimals(tiny_model, tmp_path):
    tiny_model.save(str(tmp_path / "model"))
    app = typer.Typer()
    app.command()(similarity)
    result = CliRunner().invoke(app, [str(tmp_path / "model"), "the old cat", "a small dog"])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{cosines('the old cat', 'a small dog', model=tiny_model).item():.4f}\n"
    result = CliRunner().invoke(app, ["/no/such/model", "a", "b"])
    assert result.exit_code == 2
    assert "There is no folder" in result.stderr
