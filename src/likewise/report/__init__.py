"""Reports: what a model does beside its scores, as data, a table and a picture.

`similarity` shows the cosines of a sentence with itself, its negation and another one; `errors` the pairs of an STS
task with the most wrong rank; `sweep` the score over the weights of SNCSE's margin loss. The pictures need the extra
'report' (matplotlib, jinja2); everything is imported at first use.
"""

from typing import TYPE_CHECKING

from likewise.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.report.errors import write_errors
    from likewise.report.similarity import SimilarityReport, compare_similarity, write_similarity
    from likewise.report.sweeping import SweepReport, sweep

__all__ = ["SimilarityReport", "SweepReport", "compare_similarity", "sweep", "write_errors", "write_similarity"]

_HOME = {
    "SimilarityReport": ".similarity",
    "SweepReport": ".sweeping",
    "compare_similarity": ".similarity",
    "sweep": ".sweeping",
    "write_errors": ".errors",
    "write_similarity": ".similarity",
}

__getattr__, __dir__ = lazy_names(__name__, _HOME)
