"""Evaluation: one file per task family, typed results, one suite that runs them.

The names below are loaded on first use, so that `import likewise.evaluation` does not import torch.
"""

from typing import TYPE_CHECKING

from likewise.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.evaluation.bertscore import BertScore
    from likewise.evaluation.cross_encoder import CrossEncoderScorer
    from likewise.evaluation.facets import FacetResult
    from likewise.evaluation.geometry import alignment, uniformity
    from likewise.evaluation.held_out import HeldOutEvaluator
    from likewise.evaluation.pair_scoring import PairScorer, evaluate_pairs
    from likewise.evaluation.pairs import PairResult, SubsetResult
    from likewise.evaluation.registry import GROUPS, TASKS, UnknownTaskError
    from likewise.evaluation.report import EvaluationReport, MissingTask
    from likewise.evaluation.sts_dev import StsDevEvaluator
    from likewise.evaluation.suite import evaluate
    from likewise.evaluation.tasks import DataError, TaskResult, find_data
    from likewise.evaluation.transfer import TransferResult
    from likewise.evaluation.wiki_sections import TripletResult

__all__ = [
    "GROUPS",
    "TASKS",
    "BertScore",
    "CrossEncoderScorer",
    "DataError",
    "EvaluationReport",
    "FacetResult",
    "HeldOutEvaluator",
    "MissingTask",
    "PairResult",
    "PairScorer",
    "StsDevEvaluator",
    "SubsetResult",
    "TaskResult",
    "TransferResult",
    "TripletResult",
    "UnknownTaskError",
    "alignment",
    "evaluate",
    "evaluate_pairs",
    "find_data",
    "uniformity",
]

_HOME = {
    "GROUPS": ".registry",
    "TASKS": ".registry",
    "BertScore": ".bertscore",
    "CrossEncoderScorer": ".cross_encoder",
    "DataError": ".tasks",
    "EvaluationReport": ".report",
    "FacetResult": ".facets",
    "HeldOutEvaluator": ".held_out",
    "MissingTask": ".report",
    "PairResult": ".pairs",
    "PairScorer": ".pair_scoring",
    "StsDevEvaluator": ".sts_dev",
    "SubsetResult": ".pairs",
    "TaskResult": ".tasks",
    "TransferResult": ".transfer",
    "TripletResult": ".wiki_sections",
    "UnknownTaskError": ".registry",
    "alignment": ".geometry",
    "evaluate": ".suite",
    "evaluate_pairs": ".pair_scoring",
    "find_data": ".tasks",
    "uniformity": ".geometry",
}

__getattr__, __dir__ = lazy_names(__name__, _HOME)
