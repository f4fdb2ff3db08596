from .choice_flow import choose as choose
from .choice_result import Choice as Choice
from .choice_result import System as System
