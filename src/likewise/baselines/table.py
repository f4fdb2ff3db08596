"""The only table of the baselines' names."""

from __future__ import annotations

from likewise.baselines.averages import CLS, FIRST_LAST_AVERAGE, LAST_AVERAGE, WORD_AVERAGE
from likewise.baselines.baseline import Baseline
from likewise.baselines.flow import FLOW
from likewise.baselines.whitening import WHITENING
from likewise.runs.options import OptionError

BASELINES: dict[str, Baseline] = {
    baseline.name: baseline for baseline in (WORD_AVERAGE, LAST_AVERAGE, FIRST_LAST_AVERAGE, CLS, WHITENING, FLOW)
}


def find_baseline(name: str) -> Baseline:
    """The baseline of that name.

    Raises:
        OptionError: there is none; the message lists those there are.
    """
    if name not in BASELINES:
        raise OptionError(f"there is no baseline {name!r}; there are {', '.join(BASELINES)}")
    return BASELINES[name]
