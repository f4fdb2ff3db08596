from .building import baseline as baseline
from .building import find_baseline as find_baseline
from .methods import BASELINES as BASELINES
from .methods import Baseline as Baseline
from .methods import BaselineError as BaselineError
