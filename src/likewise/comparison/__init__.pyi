from .compared_methods import ComparisonError as ComparisonError
from .compared_methods import Method as Method
from .compared_methods import parse_methods as parse_methods
from .comparison_job import compare as compare
from .comparison_result import Comparison as Comparison
