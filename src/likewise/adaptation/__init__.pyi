from .adapt_options import AdaptOptions as AdaptOptions
from .adapt_options import CharactersOptions as CharactersOptions
from .adaptation_flow import adapt as adapt
from .adaptation_result import AdaptResult as AdaptResult
from .adaptation_result import Candidate as Candidate
from .characters import train_characters as train_characters
