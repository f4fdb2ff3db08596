"""Reports on single models: the cosines of related sentences, and the pairs that are ranked most wrongly (table 4).

Wang et al. 2022, "SNCSE", figure 4 and section 4.3: 5,000 sentences of the STS test sets; the positive of a sentence
is itself, its soft negative its negation, its negative another sentence at random. A model that suppresses features
puts a sentence and its negation as close together as a sentence and itself. What differs: the cosine of a sentence
with itself is 1 and no distribution, so two views of it under dropout are shown, which training pulls together.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.comparison.comparison_page import errors_page, open_folder, rank
from likewise.comparison.methods import ComparisonError
from likewise.comparison.pictures import cut_middle, draw_errors, draw_similarity
from likewise.errors import counted
from likewise.evaluation.pairs import pair_cosines
from likewise.evaluation.rank_errors import ErrorAnalysis
from likewise.evaluation.registry import resolve
from likewise.evaluation.score_table import markdown_table
from likewise.evaluation.suite import read_tasks
from likewise.runs.options import checked_seed
from likewise.runs.progress import Progress
from likewise.runs.results import note_results
from likewise.runs.whole_files import write_json, write_text

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.inference.vectors import Precision

VIEWED = 1000  # sentences that are encoded twice under dropout: enough for a distribution, and cheap
VIEWS, NEGATION, OTHER = "itself under dropout", "its negation", "another sentence"
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_BINS = 100  # of width 0.02, from -1 to 1


@dataclass(frozen=True)
class Distribution:
    """The cosines of one model on one kind of pairs.

    Attributes:
        kind: VIEWS, NEGATION or OTHER.
        cosines: (S,) float64, in the order of the sentences.
    """

    label: str
    model: str
    kind: str
    cosines: np.ndarray

    def histogram(self) -> tuple[np.ndarray, np.ndarray]:
        """Return counts (100,) and edges (101,) over -1 to 1; values outside by rounding count in the last bins."""
        return np.histogram(np.clip(self.cosines, -1.0, 1.0), bins=_BINS, range=(-1.0, 1.0))

    @property
    def peak(self) -> float:
        """The centre of the fullest bin, the lowest one in a tie."""
        counts, edges = self.histogram()
        fullest = int(counts.argmax())
        return float(edges[fullest] + edges[fullest + 1]) / 2

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        counts, edges = self.histogram()
        return {
            "label": self.label,
            "model": self.model,
            "kind": self.kind,
            "pairs": len(self.cosines),
            "mean": float(self.cosines.mean()),
            "standard_deviation": float(self.cosines.std()),
            "peak": round(self.peak, 2),
            "quantiles": {str(q): float(np.quantile(self.cosines, q)) for q in QUANTILES},
            "histogram": {"from": -1.0, "to": 1.0, "width": float(edges[1] - edges[0]), "counts": counts.tolist()},
        }


def related_cosines(
    model: SentenceTransformer,
    sentences: Sequence[str],
    negations: Mapping[int, str],
    *,
    seed: int,
    viewed: int | None = None,
    progress: Progress | None = None,
    **how: Any,
) -> dict[str, np.ndarray]:
    """Return the cosines of sentences with themselves, with their negations and with random other sentences.

    Args:
        negations: by the index of their sentences, in order; not every sentence needs one.
        viewed: how many sentences are encoded under dropout; None takes all.
        how: batch_size and precision, as in `likewise.evaluate`.
    """
    from likewise.inference.vectors import encode

    vectors = encode(model, [*sentences, *negations.values()], progress=progress, **how)
    own, negated = np.split(vectors, [len(sentences)])  # each (S, D)
    views = dropout_views(model, sentences[:viewed], seed=seed, **how)
    found = {} if views is None else {VIEWS: pair_cosines(*views)}
    if negations:
        found[NEGATION] = pair_cosines(own[list(negations)], negated)
    if len(own) > 1:
        found[OTHER] = pair_cosines(own, own[partners(len(own), seed)])
    return found


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
                found = model(batch_to_device(features, model.device))["sentence_embedding"]  # (B, D)
                view[rows] = found[:, : model.truncate_dim].float().cpu().numpy()
    return views


@dataclass(frozen=True)
class SimilarityReport:
    """The distributions of cosines, and their sentences.

    Attributes:
        source: where the sentences come from.
        seed: fixed the draw, the partners and the dropout.
        drawn: how many sentences were drawn.
        left_out: how many of them have no negation, by reason.
        sentences, negations, others: S each, row by row.
        distributions: model by model; without dropout a model has none of VIEWS.
    """

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
        return {d.label: d.model for d in self.distributions}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        draw = {name: getattr(self, name) for name in ("source", "seed", "drawn", "left_out")}
        return draw | {"sentences": len(self.sentences), "distributions": [d.to_dict() for d in self.distributions]}

    def table(self) -> str:
        """Return mean, peak and quantiles as a Markdown table."""
        columns = ("Model", "A sentence and", "Count", "Mean", "Peak", "5%", "25%", "Median", "75%", "95%")
        rows = []
        for d in self.distributions:
            values = [float(d.cosines.mean()), d.peak, *(float(np.quantile(d.cosines, q)) for q in QUANTILES[1:-1])]
            rows.append((d.label, d.kind, f"{len(d.cosines):,}", *(f"{value:.3f}" for value in values)))
        names = "\n".join(f"- {label}: `{model}`" for label, model in self.models.items())
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in self.left_out.items())
        return (
            f"# Cosines of a sentence with itself, its negation and another sentence\n\n{names}\n\n"
            f"{self.drawn:,} sentences of {self.source}, drawn with seed {self.seed}; {sum(self.left_out.values()):,} "
            f"have no negation and are left out{f' ({reasons})' if reasons else ''}. Itself under dropout: two views, "
            f"the positive pair of training; without dropout the cosine is 1.\n\n"
            f"{markdown_table(columns, rows, left=2)}\n"
        )


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

    drawn, source = draw_sentences(sentences, data, n, checked_seed(seed))
    negated = negate_batch(drawn)
    kept = {item.sentence: item.negation for item in negated if item.negation is not None}  # no sentence is twice
    own, negations = [*kept], [*kept.values()]
    left_out = Counter(item.reason or "unknown" for item in negated if item.negation is None)
    if len(own) < 2:
        raise ComparisonError(
            f"of {counted(len(drawn), 'sentence')} of {source}, {len(own)} can be negated. Give more sentences."
        )
    how: dict[str, Any] = {"batch_size": batch_size, "precision": precision, "progress": Progress(quiet)}
    distributions: list[Distribution] = []
    for label, which in [("model", model)] if before is None else [("before", before), ("after", model)]:
        encoder, name = opened(which)
        cosines = related_cosines(encoder, own, dict(enumerate(negations)), seed=seed, viewed=VIEWED, **how)
        distributions += [Distribution(label, name, kind, found) for kind, found in cosines.items()]
    reasons, others = dict(left_out.most_common()), tuple(own[i] for i in partners(len(own), seed))
    texts = (tuple(own), tuple(negations), others)
    return SimilarityReport(source, seed, len(drawn), reasons, *texts, tuple(distributions))


def draw_sentences(
    sentences: str | os.PathLike[str] | Sequence[str] | None, data: str | os.PathLike[str] | None, n: int, seed: int
) -> tuple[list[str], str]:
    """Return a draw of distinct sentences and a description of their source; order and repeats do not matter."""
    if n < 2:
        raise ComparisonError(f"n is {n}; a random pair needs 2 sentences or more.")
    if sentences is None:
        prepared, missing = read_tasks(resolve("sts")[0], data)
        found = [text for _, ready in prepared for text in ready.sentences]
        source = f"the test sets {', '.join(task.title for task, _ in prepared) or '(none)'}"
        source += f" ({len(missing)} of 7 are missing)" if missing else ""
    elif isinstance(sentences, (str, os.PathLike)):
        from likewise.inference.text_pieces import lines_of

        source = os.fspath(sentences)
        found = list(lines_of(source))
    else:
        found, source = list(sentences), "a list"
    unique = sorted({text.strip() for text in found} - {""})
    if len(unique) < 2:
        raise ComparisonError(f"{source} holds {counted(len(unique), 'different sentence')}. Give 2 or more.")
    return [unique[i] for i in np.random.default_rng(seed).permutation(len(unique))[:n]], source


SIMILARITY_FILES = ("similarity.json", "similarity.md", "similarity.tsv", "similarity.png")
ERROR_FILES = ("errors.json", "errors.md", "errors.png", "errors.html")


def write_similarity(report: SimilarityReport, out: str | os.PathLike[str], overwrite: bool = False) -> list[Path]:
    """Write similarity.json, .md, .tsv (every pair with its cosines) and .png into a folder; return their paths.

    Files that likewise did not write are replaced only with `overwrite`; see `check_results`.
    """
    folder = open_folder(out, SIMILARITY_FILES, overwrite)
    shown = {
        f"{label}: {cut_middle(model, 30)}": [d.to_dict() for d in report.distributions if d.label == label]
        for label, model in report.models.items()
    }
    columns = [d for d in report.distributions if d.kind in (NEGATION, OTHER)]
    lines = ["\t".join(["sentence", "negation", "other", *(f"{d.label}: {d.kind}" for d in columns)])]
    for i, texts in enumerate(zip(report.sentences, report.negations, report.others, strict=True)):
        cells = [" ".join(text.split()) for text in texts]
        lines.append("\t".join([*cells, *(f"{d.cosines[i]:.6f}" for d in columns)]))
    written = [
        write_json(folder / "similarity.json", report.to_dict(), strict=True),
        write_text(folder / "similarity.md", report.table()),
        write_text(folder / "similarity.tsv", "\n".join(lines) + "\n"),
        draw_similarity(shown, folder / "similarity.png"),
    ]
    note_results(*written)
    return written


def write_errors(analysis: ErrorAnalysis, out: str | os.PathLike[str], overwrite: bool = False) -> list[Path]:
    """Write errors.json, .md, .png and .html into a folder; return their paths.

    Files that likewise did not write are replaced only with `overwrite`; see `check_results`.
    """
    folder = open_folder(out, ERROR_FILES, overwrite)
    headline = f"{analysis.title}: the {len(analysis.worst)} pairs with the most wrong rank"
    picture = draw_errors(analysis, folder / "errors.png")
    written = [
        write_json(folder / "errors.json", analysis.to_dict(), strict=True),
        write_text(folder / "errors.md", f"# {headline}\n\n{_about(analysis)}\n\n{errors_table(analysis)}\n"),
        picture,
        write_text(folder / "errors.html", errors_page(analysis, headline, _about(analysis), picture)),
    ]
    note_results(*written)
    return written


def errors_table(analysis: ErrorAnalysis) -> str:
    """Return the worst pairs as a Markdown table, each with its two sentences one above the other."""
    columns = ("No.", "Sentences", "Direction", "Gold", "Cosine", "R_G", "R_E", "(R_E - R_G)^2")
    rows = []
    for i, pair in enumerate(analysis.worst, start=1):
        numbers = (f"{pair.gold:g}", f"{pair.cosine:.3f}", rank(pair.gold_rank), rank(pair.estimated_rank))
        rows.append((str(i), pair.first, pair.direction, *numbers, f"{pair.error:,.0f}"))
        rows.append(("", pair.second, "", "", "", "", "", ""))
    return markdown_table(columns, rows, left=3)


def _about(analysis: ErrorAnalysis) -> str:
    low, high = analysis.scale
    return (
        f"Model {analysis.model}, {analysis.pairs:,} pairs, Spearman {analysis.spearman:.2f} "
        f"(by equation 10, which knows no ties, {analysis.spearman_equation_10:.2f}). "
        f"R_G is the rank by the human rating ({low:g} to {high:g}), R_E the rank by the cosine, from 1 for the least "
        f"similar pair to {analysis.pairs:,}; equal values share the mean of their ranks. Overestimated: R_E above R_G "
        f"({analysis.overestimated} of {len(analysis.worst)})."
    )
