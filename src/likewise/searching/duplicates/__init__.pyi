from .duplicates import Duplicates as Duplicates
from .duplicates import NearPair as NearPair
from .duplicates import duplicates as duplicates
from .topics import Topic as Topic
from .topics import Topics as Topics
from .topics import topics as topics
