from .hit import Hit as Hit
from .indexing import Indexed as Indexed
from .indexing import index as index
from .reading import Index as Index
from .reading import Pipeline as Pipeline
from .reading import search as search
from .table import SearchError as SearchError
