from pathlib import Path

import pytest

from likewise.cli.training import show_outcome
from likewise.training import TrainingResult


@pytest.mark.parametrize("score", [85.0, 75.0])
def test_a_training_that_cost_more_than_it_brought_is_told(score, capsys):
    best = {"metric": "sts_dev_spearman", "score": score, "step": 5, "improved": score > 80}
    record = {"steps": 5, "before": {"sts_dev_spearman": 80.0}, "best": best}
    show_outcome(TrainingResult(Path("run"), record))
    said = capsys.readouterr()
    assert f"80 before, {score:.4g} after" in said.out
    assert ("The base was better" in said.err) == (score < 80)
