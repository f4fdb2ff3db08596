"""The cosines of positive, soft negative and random pairs, of one model or before and after (SNCSE, figure 4).

Wang et al. 2022, "SNCSE", section 4.3: 5,000 sentences of the STS test sets; the positive of a sentence is itself, its
soft negative is its negation, its negative is another sentence at random. A model that suppresses features puts a
sentence and its negation as close together as a sentence and itself.

What differs: the paper's positive is the sentence itself, so its cosine is 1 and no distribution; beside it two views
of one sentence under dropout are shown where the model has dropout, as that is what training pulls together.
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

from likewise.evaluation.pairs import pair_cosines
from likewise.report.draw import draw_sentences, partners
from likewise.report.pictures import require_extra
from likewise.report.writing import ReportError, markdown_table, open_folder
from likewise.runs.whole_files import write_json, write_text

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.inference.encoding import Precision

POSITIVE, SOFT_NEGATIVE, RANDOM = "positive", "soft negative", "random"
KINDS = (POSITIVE, SOFT_NEGATIVE, RANDOM)
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_BINS = 100  # of width 0.02, from -1 to 1
VIEWS = 1000  # sentences that are encoded twice under dropout: enough for a distribution, and cheap


@dataclass(frozen=True)
class Distribution:
    """The cosines of one model on one kind of pairs.

    Attributes:
        label: 'before', 'after', or 'model' where there is only one.
        model: its name or folder.
        kind: of KINDS.
        cosines: (S,) float64, in the order of the sentences.
    """

    label: str
    model: str
    kind: str
    cosines: np.ndarray

    def histogram(self) -> tuple[np.ndarray, np.ndarray]:
        """Counts (100,) and edges (101,) over -1 to 1; rounding errors outside fall into the last bins."""
        return np.histogram(np.clip(self.cosines, -1.0, 1.0), bins=_BINS, range=(-1.0, 1.0))

    @property
    def peak(self) -> float:
        """The middle of the fullest bin, the lowest of equals."""
        counts, edges = self.histogram()
        fullest = int(counts.argmax())
        return float(edges[fullest] + edges[fullest + 1]) / 2

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
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


@dataclass(frozen=True)
class SimilarityReport:
    """The distributions, and the sentences that they are of.

    Attributes:
        source: where the sentences come from.
        seed: fixed the draw, the partners and the dropout.
        drawn: how many sentences were drawn.
        left_out: how many of them have no negation, by reason.
        sentences, negations, others: S each, row by row.
        distributions: model by model in the order of KINDS; without dropout a model has no positive one.
    """

    source: str
    seed: int
    drawn: int
    left_out: Mapping[str, int]
    sentences: tuple[str, ...]
    negations: tuple[str, ...]
    others: tuple[str, ...]
    distributions: tuple[Distribution, ...]

    def of(self, label: str, kind: str) -> Distribution | None:
        """One distribution, None where there is none."""
        return next((d for d in self.distributions if (d.label, d.kind) == (label, kind)), None)

    @property
    def labels(self) -> tuple[str, ...]:
        """The models, before first."""
        return tuple(dict.fromkeys(d.label for d in self.distributions))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "source": self.source,
            "seed": self.seed,
            "drawn": self.drawn,
            "left_out": dict(self.left_out),
            "sentences": len(self.sentences),
            "positive": "two views of a sentence under dropout; the sentence with itself is 1 by definition",
            "distributions": [d.to_dict() for d in self.distributions],
        }

    def table(self) -> str:
        """The Markdown of mean, quantiles and peak."""
        columns = ("Model", "Pairs of", "Count", "Mean", "Peak", "5%", "25%", "Median", "75%", "95%")
        rows = []
        for d in self.distributions:
            values = [float(d.cosines.mean()), d.peak, *(float(np.quantile(d.cosines, q)) for q in QUANTILES[1:-1])]
            rows.append((d.label, d.kind, f"{len(d.cosines):,}", *(f"{value:.3f}" for value in values)))
        names = "\n".join(f"- {label}: `{self.of(label, RANDOM).model}`" for label in self.labels)  # type: ignore[union-attr]
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in self.left_out.items())
        left_out = sum(self.left_out.values())
        return (
            f"# Cosines of positive, soft negative and random pairs\n\n{names}\n\n"
            f"{self.drawn:,} sentences of {self.source}, drawn with seed {self.seed}; {left_out:,} have no negation "
            f"and are left out{f' ({reasons})' if reasons else ''}. Positive: two views of a sentence under dropout "
            "(with itself it is 1 by definition). Soft negative: with its negation. Random: with another sentence.\n\n"
            f"{markdown_table(columns, rows, left=2)}\n"
        )


def compare_similarity(
    model: SentenceTransformer | str | os.PathLike[str],
    before: SentenceTransformer | str | os.PathLike[str] | None = None,
    *,
    sentences: str | os.PathLike[str] | Sequence[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    n: int = 5000,
    seed: int = 42,
    batch_size: int = 64,
    precision: Precision | None = None,
    progress: bool = False,
) -> SimilarityReport:
    """The cosines of a model, and of another before it, on sentences, their negations and other sentences.

    Args:
        model, before: a SentenceTransformer each, or what `likewise.load` takes.
        sentences: a text file, a sentence a line, or a list; None draws from the seven STS test sets.
        data: the folder of SentEval's data, for that draw.
        n: how many sentences to draw (the paper's 5,000); all where there are fewer.
        seed: fixes the draw, the partners and the dropout (42 is the paper's).
        batch_size, precision, progress: as in `likewise.evaluate`.

    Raises:
        ReportError: there are fewer than two sentences with a negation, or `n` is below 2.
        DataError, LinesError, FileNotFoundError: the sentences cannot be read.
        LoadError: a model cannot be loaded.
        ImportError: the extra 'negation' is not installed.
    """
    from likewise.augment.negation import negate_batch

    drawn, source = draw_sentences(sentences, data, n, seed)
    negated = negate_batch(drawn)
    kept = [(item.sentence, item.negation) for item in negated if item.negation is not None]
    left_out = Counter(item.reason or "unknown" for item in negated if item.negation is None)
    if len(kept) < 2:
        raise ReportError(
            f"{len(kept)} of the {len(drawn)} sentences of {source} have a negation. Give more sentences."
        )
    own, negations = [s for s, _ in kept], [n for _, n in kept]
    other = partners(len(own), seed)

    from likewise.inference.loading import load

    given = [("model", model)] if before is None else [("before", before), ("after", model)]
    distributions: list[Distribution] = []
    for label, which in given:
        named = isinstance(which, (str, os.PathLike))
        name = os.fspath(which) if named else type(which).__name__  # type: ignore[arg-type]
        encoder = load(which) if named else which  # type: ignore[arg-type]
        cosines = _cosines(encoder, own, negations, other, seed, batch_size, precision, progress)
        distributions += [Distribution(label, name, kind, cosines[kind]) for kind in KINDS if kind in cosines]
    return SimilarityReport(
        source=source,
        seed=seed,
        drawn=len(drawn),
        left_out=dict(left_out.most_common()),
        sentences=tuple(own),
        negations=tuple(negations),
        others=tuple(own[i] for i in other),
        distributions=tuple(distributions),
    )


def _cosines(
    model: Any,
    sentences: list[str],
    negations: list[str],
    other: np.ndarray,
    seed: int,
    batch_size: int,
    precision: Precision | None,
    progress: bool,
) -> dict[str, np.ndarray]:
    """The cosines of each kind; `other` (S,) is the row of each sentence's random partner."""
    from likewise.inference.encoding import encode
    from likewise.report.views import dropout_views

    both = encode(model, [*sentences, *negations], batch_size=batch_size, precision=precision, progress=progress)
    own, negated = both[: len(sentences)], both[len(sentences) :]  # each (S, D)
    found = {SOFT_NEGATIVE: pair_cosines(own, negated), RANDOM: pair_cosines(own, own[other])}
    views = dropout_views(model, sentences[:VIEWS], seed=seed, batch_size=batch_size, precision=precision)
    if views is not None:
        found[POSITIVE] = pair_cosines(*views)
    return found


def write_similarity(report: SimilarityReport, out: str | os.PathLike[str]) -> list[Path]:
    """Write similarity.json, .md, .tsv (every pair with its cosines) and .png into a folder; their paths.

    Raises:
        ReportError: the folder cannot be made.
        ReportExtraMissing: matplotlib is not installed.
    """
    require_extra()
    from likewise.report.similarity_picture import draw_similarity

    folder = open_folder(out)
    return [
        write_json(folder / "similarity.json", report.to_dict(), strict=True),
        write_text(folder / "similarity.md", report.table()),
        write_text(folder / "similarity.tsv", _pairs(report)),
        draw_similarity(report, folder / "similarity.png"),
    ]


def _pairs(report: SimilarityReport) -> str:
    columns = [d for d in report.distributions if d.kind != POSITIVE]
    names = [f"{d.label}: {d.kind}" for d in columns]
    lines = ["\t".join(["sentence", "negation", "other", *names])]
    for i, texts in enumerate(zip(report.sentences, report.negations, report.others, strict=True)):
        cells = [" ".join(text.split()) for text in texts]
        lines.append("\t".join([*cells, *(f"{d.cosines[i]:.6f}" for d in columns)]))
    return "\n".join(lines) + "\n"
