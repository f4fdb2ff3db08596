from .building import BASELINES as BASELINES
from .building import baseline as baseline
from .building import find_baseline as find_baseline
from .method import Baseline as Baseline
from .method import BaselineError as BaselineError
