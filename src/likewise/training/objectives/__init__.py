"""The objectives of fine-tuning on labelled rows, and the only table of their names."""

from likewise.runs.options import OptionError
from likewise.training.objectives.nli import NLI
from likewise.training.objectives.objective import Objective
from likewise.training.objectives.sts import STS
from likewise.training.objectives.triplets import TRIPLETS

OBJECTIVES: dict[str, Objective] = {objective.name: objective for objective in (NLI, STS, TRIPLETS)}


def find_objective(name: str) -> Objective:
    """Return the objective of that name."""
    if name not in OBJECTIVES:
        raise OptionError(f"there is no objective {name!r}; there are {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name]
