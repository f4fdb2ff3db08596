from .adapt_options import AdaptOptions as AdaptOptions
from .flow import adapt as adapt
from .result import AdaptResult as AdaptResult
from .result import Candidate as Candidate
