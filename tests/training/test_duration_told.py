"""A long training tells how long it will take, after a few updates."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from likewise.runs.progress import Progress, StopRequest
from likewise.training import training_job
from likewise.training.training_job import Course


def told(monkeypatch, seconds_of_an_update, most, metric="sts", scoring=0.0, passes=1):
    out, now = io.StringIO(), [0.0]
    monkeypatch.setattr(training_job.time, "monotonic", lambda: now[0])
    progress = Progress(console=Console(file=out, width=200))
    args = SimpleNamespace(eval_steps=50, eval_strategy="steps", gradient_accumulation_steps=passes)
    control = SimpleNamespace()
    with progress.bar("training", most) as bar:
        course = Course(None, bar, StopRequest(progress), metric, {}, scoring)
        now[0] += 100  # the first update is slower, and does not count
        for step in range(1, 8):
            for _ in range(passes - 1):
                course.on_substep_end(args, SimpleNamespace(global_step=step - 1, max_steps=most), control)
                now[0] += seconds_of_an_update / passes
            course.on_step_end(args, SimpleNamespace(global_step=step, max_steps=most), control)
            now[0] += seconds_of_an_update / passes
    return [line for line in out.getvalue().splitlines() if "measured on" in line]


def test_updates_and_evaluations_are_counted(monkeypatch):
    # Of 206 updates 200 are left after the sixth: 1,000 s, and the evaluations at 50, 100, 150, 200 and the end.
    (line,) = told(monkeypatch, 5.0, 206, scoring=40.0)
    assert line == "about 20 min left: 200 updates of 5 s, and 5 evaluations of 40 s, measured on 5 batches"
    (line,) = told(monkeypatch, 5.0, 206, metric="")
    assert line == "about 17 min left: 200 updates of 5 s, measured on 5 batches"


def test_passes_of_a_slow_first_update_tell_it_too(monkeypatch):
    # The second to the sixth of 8 passes take 10 s each.
    (line,) = told(monkeypatch, 80.0, 100, metric="", passes=8)
    assert line == "about 2.2 h left: 100 updates of 80 s, measured on 5 batches"


@pytest.mark.parametrize("seconds", [0.1, 0.5])
def test_a_short_one_says_nothing(monkeypatch, seconds):
    assert told(monkeypatch, seconds, 204) == []
