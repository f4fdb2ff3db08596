from .index.index_update import Indexed as Indexed
from .index.table import SearchError as SearchError
from .parts.parts import Candidates as Candidates
from .parts.parts import Part as Part
from .parts.pipeline import Pipeline as Pipeline
from .query.hit import Hit as Hit
from .search_index import Index as Index
from .search_index import search as search
