from .baseline_job import baseline as baseline
from .methods import BASELINES as BASELINES
from .methods import Baseline as Baseline
from .methods import BaselineError as BaselineError
from .methods import baseline_names as baseline_names
from .methods import find_baseline as find_baseline
