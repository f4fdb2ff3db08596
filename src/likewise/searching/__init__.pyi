from .hit import Hit as Hit
from .index_update import Indexed as Indexed
from .index_update import index as index
from .search_index import Index as Index
from .search_index import Pipeline as Pipeline
from .search_index import search as search
from .table import SearchError as SearchError
