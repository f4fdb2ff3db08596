from .flow import choose as choose
from .result import Choice as Choice
from .result import System as System
