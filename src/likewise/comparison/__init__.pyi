from .comparison_job import compare as compare
from .methods import ComparisonError as ComparisonError
from .methods import Method as Method
from .methods import parse_methods as parse_methods
from .result import Comparison as Comparison
