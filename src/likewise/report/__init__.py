"""Reports: what a model does beside its scores, as data, a table and a picture.

`similarity` shows the cosines of a sentence with itself, its negation and another one; `errors` the pairs of an STS
task with the most wrong rank; `sweep` the score over the weights of SNCSE's margin loss. The pictures need the extra
'report' (matplotlib, jinja2); everything is imported at first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.report.errors import write_errors
    from likewise.report.similarity import SimilarityReport, compare_similarity, write_similarity
    from likewise.report.sweep import SweepReport, sweep

__all__ = ["SimilarityReport", "SweepReport", "compare_similarity", "sweep", "write_errors", "write_similarity"]

_HOME = {
    "SimilarityReport": "similarity",
    "SweepReport": "sweep",
    "compare_similarity": "similarity",
    "sweep": "sweep",
    "write_errors": "errors",
    "write_similarity": "similarity",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
