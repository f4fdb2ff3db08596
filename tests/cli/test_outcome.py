from pathlib import Path

import pytest

from likewise.cli.training_commands import show_outcome
from likewise.training import TrainingResult


@pytest.mark.parametrize(
    ("score", "noise", "last"),
    [
        (85.0, 0.4, "model: run  (step 5)"),
        (80.2, 0.4, "from 80 to 80.2, and a change of 0.4 may be chance. Keep the base"),
        (75.0, None, "from 80 to 75. Keep the base"),
    ],
)
def test_the_last_line_says_that_training_was_no_gain(score, noise, last, capfd):
    best = {"metric": "sts_dev_spearman", "score": score, "step": 5, "improved": score > 81, "noise": noise}
    record = {"steps": 5, "before": {"sts_dev_spearman": 80.0}, "best": best}
    show_outcome(TrainingResult(Path("run"), record))
    said = capfd.readouterr()
    assert f"80 before, {score:.4g} after" in said.out
    assert last in (said.err or said.out).splitlines()[-1]
