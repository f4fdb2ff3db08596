from .choice import Candidate as Candidate
from .flow import adapt as adapt
from .options import AdaptOptions as AdaptOptions
from .result import AdaptResult as AdaptResult
