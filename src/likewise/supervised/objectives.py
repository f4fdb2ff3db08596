"""The objectives, and the only table of their names."""

from likewise.runs.options import OptionError
from likewise.supervised.nli import NLI
from likewise.supervised.objective import Objective
from likewise.supervised.sts import STS
from likewise.supervised.triplets import TRIPLETS

OBJECTIVES: dict[str, Objective] = {objective.name: objective for objective in (NLI, STS, TRIPLETS)}


def find_objective(name: str) -> Objective:
    """The objective of that name.

    Raises:
        OptionError: there is none; the message lists those there are.
    """
    if name not in OBJECTIVES:
        raise OptionError(f"there is no objective {name!r}; there are {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name]
