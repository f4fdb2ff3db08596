from .duplicates import Duplicates as Duplicates
from .duplicates import NearPair as NearPair
from .duplicates import duplicates as duplicates
