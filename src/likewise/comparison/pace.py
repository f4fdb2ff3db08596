"""A budget of minutes as a number of updates, measured once for each method.

The updates are counted beforehand, and not cut off by a clock, so that the learning rate still ends where its schedule
says, all seeds of a method have the same number, and the number can be given again as a budget of steps.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from likewise.comparison.methods import Method
from likewise.comparison.plan import Plan
from likewise.runs.whole_files import write_json

# The first half of them is slower, and not counted.
_UPDATES = 20


def steps_of(method: Method, plan: Plan, folder: Path) -> tuple[int, float | None]:
    """How many updates a method has, and the seconds that one takes if it had to be measured.

    Args:
        method: one that is trained.
        plan: with a budget of steps or minutes.
        folder: of the comparison; a measured pace is kept in it.
    """
    if plan.steps is not None:
        return plan.steps, None
    assert plan.minutes is not None
    path = folder / "pace" / f"{method.key}.json"
    if path.is_file():
        seconds = float(json.loads(path.read_text(encoding="utf-8"))["seconds_an_update"])
    else:
        seconds = _measure(method, plan, folder / "runs" / f"{method.key}-pace")
        path.parent.mkdir(exist_ok=True)
        write_json(path, {"method": method.label, "seconds_an_update": seconds}, strict=True)
    return max(1, int(60 * plan.minutes / seconds)), seconds


def _measure(method: Method, plan: Plan, out: Path) -> float:
    """Seconds of an update, over the last half of a short training that is then thrown away."""
    import likewise

    short = {"max_steps": _UPDATES, "eval_steps": _UPDATES, "select_by": "last"}
    result = likewise.train(
        method.name,
        list(plan.corpus),
        plan.base_of(method),
        out,
        preset=method.preset or plan.preset,
        seed=plan.seeds[0],
        data=plan.data,
        corpus_options=plan.corpus_options,
        overwrite=True,
        quiet=True,
        **{**plan.shared, **method.options, **short},
    )
    if not result.finished:
        raise KeyboardInterrupt
    entries = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    at = {entry["step"]: entry["seconds"] for entry in reversed(entries)}  # the first entry of a step, before it saves
    shutil.rmtree(out)
    middle = max(step for step in at if step <= _UPDATES // 2)
    return max((at[_UPDATES] - at[middle]) / (_UPDATES - middle), 1e-6)
