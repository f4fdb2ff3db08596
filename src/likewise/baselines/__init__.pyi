from .baseline_job import baseline as baseline
from .baseline_job import find_baseline as find_baseline
from .methods import BASELINES as BASELINES
from .methods import Baseline as Baseline
from .methods import BaselineError as BaselineError
