from functools import partial

from typer.testing import CliRunner

from likewise.adaptation import adaptation_flow
from likewise.adaptation.head import HeadTrainingOptions
from likewise.cli import build_app


def test_adapt_shows_candidates_and_choice(tiny_base, sentences, tmp_path, monkeypatch):
    monkeypatch.setattr(adaptation_flow, "HeadTrainingOptions", partial(HeadTrainingOptions, steps=5, batch_size=32))
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "lines.txt").write_text(
        "\n\n".join(map(" ".join, zip(sentences[::2], sentences[1::2], strict=True)))
    )
    arguments = ["adapt", str(tmp_path / "text"), "--base", str(tiny_base), "--minutes", "10"]
    done = CliRunner().invoke(
        build_app(), [*arguments, "--out", str(tmp_path / "model")], env={"COLUMNS": "120", "LIKEWISE_DATA": ""}
    )
    assert done.exit_code == 0, done.output
    for part in ("words 0.7, trained map", "words 0.7 ", "chosen: ", f"model: {tmp_path / 'model'}"):
        assert part in done.output
    assert "already complete" not in done.output
    again = CliRunner().invoke(build_app(), [*arguments, "--out", str(tmp_path / "model")], env={"LIKEWISE_DATA": ""})
    assert again.exit_code == 0, again.output
    assert f"{tmp_path / 'model'} is already complete; use --overwrite to rebuild it" in " ".join(again.output.split())
    again = CliRunner().invoke(build_app(), [*arguments, "--out", str(tmp_path / "model"), "--seed", "2"])
    assert again.exit_code == 2
    assert "seed 1, not 2" in " ".join(again.output.split())
