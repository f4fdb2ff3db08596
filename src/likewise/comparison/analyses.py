"""Analyses of one model, as in Wang et al. 2022, "SNCSE".

The cosines of related sentences (figure 4 and section 4.3): 5,000 sentences of the STS test sets; the positive of a
sentence is itself, its soft negative its negation, its negative another sentence at random. A model that suppresses
features puts a sentence and its negation as close together as a sentence and itself. What differs: the cosine of a
sentence with itself is 1 and no distribution, so two views of it under dropout are shown, which training brings close.

The pairs of an STS task that a model ranks most wrongly (section 5, table 4, equations 10 and 11).

Letters of the shapes: S sentences, P pairs, D embedding.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from likewise.comparison.methods import ComparisonError
from likewise.comparison.pictures import check_extra, draw_ranks, draw_similarity
from likewise.errors import counted
from likewise.evaluation.pairs import RatedPairs, correlations, pair_cosines
from likewise.evaluation.registry import rated_task, resolve
from likewise.evaluation.score_table import markdown_table
from likewise.evaluation.suite import read_tasks
from likewise.evaluation.task import EvaluationError, plain
from likewise.evaluation.tasks.sts import StsTask
from likewise.runs.options import checked_seed
from likewise.runs.progress import Progress
from likewise.runs.results import check_results, note_results
from likewise.runs.whole_files import write_json, write_text

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.inference.vectors import Precision

VIEWED = 1000  # sentences that are encoded twice under dropout: enough for a distribution, and cheap
VIEWS, NEGATION, OTHER = "itself under dropout", "its negation", "another sentence"
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_BINS = 100  # of width 0.02, from -1 to 1


class Analysis(ABC):
    """The result of an analysis, which is written as NAME.json, NAME.md and NAME.png."""

    NAME: ClassVar[str]

    @classmethod
    def paths(cls, out: str | os.PathLike[str], overwrite: bool = False) -> list[Path]:
        """Return the files of an analysis in a folder, which is not made yet.

        Raises:
            LikewiseError: they cannot be written there, or the extra 'report' is not installed.
        """
        check_extra()
        folder = Path(out)
        nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK):
            reason = "Permission denied" if nearest.is_dir() else f"'{nearest}' is a file"
            raise ComparisonError(f"--out '{out}' cannot be made a folder ({reason}). Give another one.")
        paths = [folder / f"{cls.NAME}.{kind}" for kind in ("json", "md", "png")]
        if folder.is_dir():
            check_results(*paths, overwrite=overwrite)
        return paths

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""

    @abstractmethod
    def table(self) -> str:
        """Return the analysis as Markdown."""

    @abstractmethod
    def draw(self, path: Path) -> None:
        """Write the picture."""

    def write(self, out: str | os.PathLike[str], overwrite: bool = False) -> list[Path]:
        """Write the analysis into a folder, which is made if it is not there; return the files.

        Files that likewise did not write are replaced only with `overwrite`.
        """
        facts, table, picture = paths = self.paths(out, overwrite)
        facts.parent.mkdir(parents=True, exist_ok=True)
        write_json(facts, self.to_dict(), strict=True)
        write_text(table, self.table())
        self.draw(picture)
        note_results(*paths)
        return paths


@dataclass(frozen=True)
class Distribution:
    """The cosines (S,) of one model on one kind of pairs (VIEWS, NEGATION or OTHER), in the order of the sentences."""

    label: str
    model: str
    kind: str
    cosines: np.ndarray

    @property
    def peak(self) -> float:
        """The centre of the fullest of 100 bins from -1 to 1, the lowest one in a tie."""
        counts, edges = np.histogram(np.clip(self.cosines, -1.0, 1.0), bins=_BINS, range=(-1.0, 1.0))
        return float(edges[counts.argmax()]) + 1 / _BINS

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            **{"label": self.label, "model": self.model, "kind": self.kind, "pairs": len(self.cosines)},
            **{"mean": float(self.cosines.mean()), "standard_deviation": float(self.cosines.std())},
            "peak": round(self.peak, 2),
            "quantiles": {str(q): float(np.quantile(self.cosines, q)) for q in QUANTILES},
        }


@dataclass(frozen=True)
class SimilarityReport(Analysis):
    """The distributions of cosines, and their sentences.

    Attributes:
        source: where the sentences come from.
        seed: fixed the draw, the partners and the dropout.
        drawn: how many sentences were drawn.
        left_out: how many of them have no negation, by reason.
        sentences, negations, others: S each, row by row.
        distributions: model by model; without dropout a model has none of VIEWS.
    """

    NAME = "similarity"

    source: str
    seed: int
    drawn: int
    left_out: Mapping[str, int]
    sentences: tuple[str, ...]
    negations: tuple[str, ...]
    others: tuple[str, ...]
    distributions: tuple[Distribution, ...]

    @property
    def models(self) -> dict[str, str]:
        """The model of each label, the one before training first."""
        return {distribution.label: distribution.model for distribution in self.distributions}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the facts, each distribution, and each sentence with its cosines."""
        facts = {name: getattr(self, name) for name in ("source", "seed", "drawn", "left_out")}
        texts = zip(self.sentences, self.negations, self.others, strict=True)
        rows = [dict(zip(("sentence", "negation", "other"), row, strict=True)) for row in texts]
        for distribution in self.distributions:
            if distribution.kind != VIEWS:
                for row, cosine in zip(rows, distribution.cosines.tolist(), strict=True):
                    row[f"{distribution.label}: {distribution.kind}"] = round(cosine, 6)
        return {
            **facts,
            "distributions": [distribution.to_dict() for distribution in self.distributions],
            "sentences": rows,
        }

    def cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the columns and the rows of the table."""
        columns = ("Model", "A sentence and", "Count", "Mean", "Peak", "5%", "25%", "Median", "75%", "95%")
        rows = []
        for distribution in self.distributions:
            values = [
                distribution.cosines.mean(),
                distribution.peak,
                *np.quantile(distribution.cosines, QUANTILES[1:-1]),
            ]
            rows.append(
                (
                    distribution.label,
                    distribution.kind,
                    f"{len(distribution.cosines):,}",
                    *(f"{value:.3f}" for value in values),
                )
            )
        return columns, rows

    def table(self) -> str:
        """Return mean, peak and quantiles as Markdown."""
        names = "\n".join(f"- {label}: `{model}`" for label, model in self.models.items())
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in self.left_out.items())
        return (
            f"# Cosines of a sentence with itself, its negation and another sentence\n\n{names}\n\n"
            f"{self.drawn:,} sentences of {self.source}, drawn with seed {self.seed}; {sum(self.left_out.values()):,} "
            f"have no negation and are left out{f' ({reasons})' if reasons else ''}. Itself under dropout: two views, "
            f"the positive pair of training; without dropout the cosine is 1.\n\n"
            f"{markdown_table(*self.cells(), left=2)}\n"
        )

    def draw(self, path: Path) -> None:
        """Draw a panel for each model, with a curve for each kind of pairs."""
        panels = {
            f"{label}: {model}": {
                distribution.kind: distribution.cosines
                for distribution in self.distributions
                if distribution.label == label
            }
            for label, model in self.models.items()
        }
        draw_similarity(panels, path)


def partners(count: int, seed: int) -> np.ndarray:
    """Return (count,) the index of a random other row for each row; each row is used once.

    The rows are put on a ring in a random order, and the partner of a row is the next one on it.

    >>> partners(2, seed=0).tolist()
    [1, 0]
    """
    ring = np.random.default_rng([seed, 1]).permutation(count)
    following = np.empty(count, dtype=np.int64)
    following[ring] = np.roll(ring, -1)
    return following


def dropout_views(
    model: SentenceTransformer,
    sentences: Sequence[str],
    *,
    seed: int,
    batch_size: int = 64,
    precision: Precision | None = None,
) -> np.ndarray | None:
    """Encode each sentence twice with dropout on, as the positive pairs of SimCSE and SNCSE.

    This is no `TextEncoder`, whose vectors of a text are the same ones each time.

    Returns:
        (2, S, D) float32; None where the model has no dropout, so that both would be equal.
    """
    import torch
    from sentence_transformers.util import batch_to_device
    from torch.nn.modules.batchnorm import _BatchNorm

    from likewise.inference.vectors import autocast, dimension, undisturbed

    if not any(isinstance(module, torch.nn.Dropout) and module.p > 0 for module in model.modules()):
        return None
    order = np.argsort([len(text) for text in sentences], kind="stable")  # batches of one length pad little
    views = np.empty((2, len(sentences), dimension(model)), dtype=np.float32)
    with undisturbed(model), autocast(model, precision), torch.inference_mode():
        torch.manual_seed(seed)
        for module in model.modules():
            # Attention layers read their own flag. A batch norm would learn from what it sees.
            module.training = not isinstance(module, _BatchNorm)
        for view in views:
            for start in range(0, len(order), batch_size):
                rows = order[start : start + batch_size]
                features = model.preprocess([sentences[i] for i in rows])
                vectors = model(batch_to_device(features, model.device))["sentence_embedding"]  # (B, D)
                view[rows] = vectors[:, : model.truncate_dim].float().cpu().numpy()
    return views


def analyze_similarity(
    model: SentenceTransformer | str | os.PathLike[str],
    before: SentenceTransformer | str | os.PathLike[str] | None = None,
    *,
    sentences: str | os.PathLike[str] | Sequence[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    n: int = 5000,
    seed: int = 42,
    batch_size: int = 64,
    precision: Precision | None = None,
    quiet: bool = True,
) -> SimilarityReport:
    """Compare the cosines of a sentence with itself, its negation and another sentence.

    Args:
        model: a SentenceTransformer, or what `likewise.load` takes.
        before: another model to compare with, such as its base.
        sentences: a text file with one sentence per line, or a list; None draws from the seven STS test sets.
        data: the folder of SentEval's data, for that draw.
        n: how many sentences to draw (the paper's 5,000); all where there are fewer.
        seed: fixes the draw, the partners and the dropout (42 is the paper's).
        batch_size, precision, quiet: as in `likewise.evaluate`.

    Raises:
        LikewiseError: fewer than two sentences have a negation, something cannot be read or loaded, or the extra
            'negation' is not installed.
    """
    from likewise.augment.negation import negate_batch
    from likewise.inference.load_model import opened
    from likewise.inference.vectors import encode

    drawn, source = draw_sentences(sentences, data, n, checked_seed(seed))
    negated = negate_batch(drawn)
    negation_of = {item.sentence: item.negation for item in negated if item.negation is not None}  # none is twice
    own, negations = [*negation_of], [*negation_of.values()]
    left_out = Counter(item.reason or "unknown" for item in negated if item.negation is None)
    if len(own) < 2:
        raise ComparisonError(
            f"of {counted(len(drawn), 'sentence')} of {source}, {len(own)} can be negated. Give more sentences."
        )
    other = partners(len(own), seed)
    how: dict[str, Any] = {"batch_size": batch_size, "precision": precision}
    distributions: list[Distribution] = []
    for label, which in [("model", model)] if before is None else [("before", before), ("after", model)]:
        encoder, name = opened(which)
        vectors = encode(encoder, [*own, *negations], progress=Progress(quiet), **how)  # (2S, D)
        first, second = np.split(vectors, 2)
        views = dropout_views(encoder, own[:VIEWED], seed=seed, **how)
        cosines = {} if views is None else {VIEWS: pair_cosines(*views)}
        cosines |= {NEGATION: pair_cosines(first, second), OTHER: pair_cosines(first, first[other])}
        distributions += [Distribution(label, name, kind, values) for kind, values in cosines.items()]
    texts = tuple(own), tuple(negations), tuple(own[i] for i in other)
    return SimilarityReport(source, seed, len(drawn), dict(left_out.most_common()), *texts, tuple(distributions))


def draw_sentences(
    sentences: str | os.PathLike[str] | Sequence[str] | None, data: str | os.PathLike[str] | None, n: int, seed: int
) -> tuple[list[str], str]:
    """Return a draw of distinct sentences and a description of their source; order and repeats do not matter."""
    if n < 2:
        raise ComparisonError(f"n is {n}; a random pair needs 2 sentences or more.")
    if sentences is None:
        prepared, missing = read_tasks(resolve("sts")[0], data)
        texts = [text for _, ready in prepared for text in ready.sentences]
        source = f"the test sets {', '.join(task.title for task, _ in prepared) or '(none)'}"
        source += f" ({len(missing)} of 7 are missing)" if missing else ""
    elif isinstance(sentences, (str, os.PathLike)):
        from likewise.inference.text_pieces import lines_of

        source = os.fspath(sentences)
        texts = list(lines_of(source))
    else:
        texts, source = list(sentences), "a list"
    unique = sorted({text.strip() for text in texts} - {""})
    if len(unique) < 2:
        raise ComparisonError(f"{source} holds {counted(len(unique), 'different sentence')}. Give 2 or more.")
    return [unique[i] for i in np.random.default_rng(seed).permutation(len(unique))[:n]], source


def ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks (P,) of P values: 1 for the lowest, and for equal values the mean of their ranks.

    >>> ranks(np.array([0.3, 0.1, 0.3])).tolist()
    [2.5, 1.0, 2.5]
    """
    from scipy.stats import rankdata

    if not np.isfinite(values).all():
        raise EvaluationError("Some cosines are not finite: the model's vectors are broken (NaN or infinite).")
    return np.asarray(rankdata(values, method="average"), dtype=np.float64)


def rank_errors(estimated: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return (R_E^i - R_G^i)^2 for each pair i, SNCSE's equation 11, from the ranks (P,) by cosine and by rating."""
    return (estimated - gold) ** 2


def spearman_of_ranks(estimated: np.ndarray, gold: np.ndarray) -> float:
    """Return Spearman's rho = 1 - sum_i (R_E^i - R_G^i)^2 / ((P^3 - P) / 6), SNCSE's equation 10, from -1 to 1.

    It is exact only where no two of the pairs (P, at least 2) share a rank. Human ratings do, so `likewise evaluate`
    gives the correlation of the ranks themselves, which is right with ties too.

    >>> spearman_of_ranks(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0]))
    -1.0
    """
    count = len(gold)
    return 1.0 - float(rank_errors(estimated, gold).sum()) / ((count**3 - count) / 6)


@dataclass(frozen=True)
class MisrankedPair:
    """A pair and its rank error.

    Attributes:
        gold_rank, estimated_rank: R_G by the rating and R_E by the cosine, 1 for the least similar pair.
        error: (R_E - R_G)^2, equation 11.
        direction: 'overestimated' if the model ranks the pair higher than people do, 'underestimated' or 'exact'.
    """

    index: int
    subset: str
    first: str
    second: str
    gold: float
    cosine: float
    gold_rank: float
    estimated_rank: float
    error: float
    direction: str


@dataclass(frozen=True)
class ErrorAnalysis(Analysis):
    """The rank errors of a model on a task.

    Attributes:
        model: its name or folder.
        task, title: the task's name in the registry and in a table.
        scale: lowest and highest rating.
        pairs: P, the number of ranked pairs.
        spearman: as `likewise evaluate` gives it, times 100 (ties corrected).
        spearman_equation_10: by `spearman_of_ranks`, times 100.
        gold_ranks, estimated_ranks: (P,) R_G and R_E of all pairs, in the order of the task.
        worst: the pairs with the largest errors, the largest first; among equals the first of the task.
    """

    NAME = "errors"

    model: str
    task: str
    title: str
    scale: tuple[float, float]
    pairs: int
    spearman: float
    spearman_equation_10: float
    gold_ranks: np.ndarray
    estimated_ranks: np.ndarray
    worst: tuple[MisrankedPair, ...]

    @property
    def overestimated(self) -> int:
        """The number of overestimated pairs among the worst."""
        return sum(pair.direction == "overestimated" for pair in self.worst)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the ranks of the worst pairs only."""
        return plain({name: value for name, value in asdict(self).items() if not name.endswith("_ranks")})

    def table(self) -> str:
        """Return the worst pairs as Markdown, each with its two sentences one above the other."""
        columns = ("No.", "Sentences", "Direction", "Gold", "Cosine", "R_G", "R_E", "(R_E - R_G)^2")
        rows: list[tuple[str, ...]] = []
        for number, pair in enumerate(self.worst, start=1):
            values = (f"{pair.gold:g}", f"{pair.cosine:.3f}", f"{pair.gold_rank:,g}", f"{pair.estimated_rank:,g}")
            rows.append((str(number), pair.first, pair.direction, *values, f"{pair.error:,.0f}"))
            rows.append(("", pair.second, *[""] * 6))
        low, high = self.scale
        return (
            f"# {self.title}: the {len(self.worst)} pairs with the most wrong rank\n\n"
            f"Model {self.model}, {self.pairs:,} pairs, Spearman {self.spearman:.2f} (by equation 10, which knows no "
            f"ties, {self.spearman_equation_10:.2f}). R_G is the rank by the human rating ({low:g} to {high:g}), R_E "
            f"the rank by the cosine, from 1 for the least similar pair to {self.pairs:,}; equal values share the mean "
            f"of their ranks. Overestimated: R_E above R_G ({self.overestimated} of {len(self.worst)}).\n\n"
            f"{markdown_table(columns, rows, left=3)}\n"
        )

    def draw(self, path: Path) -> None:
        """Draw the rank by the cosine over the rank by the rating for all pairs, the worst ones marked."""
        marked = {
            direction: [(pair.gold_rank, pair.estimated_rank) for pair in self.worst if pair.direction == direction]
            for direction in ("overestimated", "underestimated")
        }
        title = f"{self.title}: Spearman {self.spearman:.2f}\n{self.model}"
        draw_ranks(self.gold_ranks, self.estimated_ranks, marked, title, path)


def ranked(cosines: np.ndarray, pairs: RatedPairs, task: StsTask, worst: int, model: str = "") -> ErrorAnalysis:
    """Rank the rated pairs of a task by their cosines (P,), and keep the `worst` pairs with the largest errors."""
    gold, estimated = ranks(pairs.gold), ranks(cosines)
    errors = rank_errors(estimated, gold)
    directions = ("underestimated", "exact", "overestimated")
    subsets = pairs.subset_names
    picked = tuple(
        MisrankedPair(
            i,
            subsets[i],
            pairs.first[i],
            pairs.second[i],
            float(pairs.gold[i]),
            float(cosines[i]),
            float(gold[i]),
            float(estimated[i]),
            float(errors[i]),
            directions[1 + int(np.sign(estimated[i] - gold[i]))],
        )
        for i in np.argsort(-errors, kind="stable")[:worst].tolist()
    )
    spearman, by_equation = correlations(cosines, pairs.gold)[0], 100 * spearman_of_ranks(estimated, gold)
    facts = (model, task.name, task.title, task.scale, len(gold), spearman, by_equation)
    return ErrorAnalysis(*facts, gold, estimated, picked)


def analyze_errors(
    model: SentenceTransformer | str | os.PathLike[str],
    task: str,
    *,
    data: str | os.PathLike[str] | None = None,
    worst: int = 20,
    batch_size: int = 64,
    precision: Precision | None = None,
    quiet: bool = True,
) -> ErrorAnalysis:
    """Rank the pairs of a task by rating and by cosine, and find those whose two ranks differ most.

    Args:
        model: a SentenceTransformer, or what `likewise.load` takes.
        task: one task of rated pairs: sts12 to sts16, sts-b, sick-r, sts-b-dev, sts-b-train.
        worst: number of pairs to keep.
        data, batch_size, precision, quiet: as in `likewise.evaluate`.

    Raises:
        EvaluationError: there is no such task, it has no rated pairs, or `worst` is below 1.
        DataError: there is no data folder, or a file is missing or malformed.
        LoadError: the model cannot be loaded.
    """
    if worst < 1:
        raise EvaluationError(f"worst is {worst}; give 1 or more.")
    rated = rated_task(task)
    pairs = rated.pairs(data)

    # Imported here, as torch is not needed above.
    from likewise.inference.load_model import opened
    from likewise.inference.vectors import encode

    encoder, name = opened(model)
    texts = [*pairs.first, *pairs.second]
    vectors = encode(encoder, texts, batch_size=batch_size, precision=precision, progress=Progress(quiet))  # (2P, D)
    return ranked(pair_cosines(*np.split(vectors, 2)), pairs, rated, worst, name)
