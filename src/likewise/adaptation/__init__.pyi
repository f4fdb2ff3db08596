from .adapt_options import AdaptOptions as AdaptOptions
from .choice import Candidate as Candidate
from .flow import adapt as adapt
from .result import AdaptResult as AdaptResult
