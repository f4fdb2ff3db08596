"""Checkpoint selection with no ratings at all: from plain sentences that training did not see."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.evaluation.checkpoint import CheckpointEvaluator
from likewise.evaluation.geometry import alignment, uniformity
from likewise.evaluation.token_cache import TokenCache

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.inference.encoding import Precision

_SHORTEST = 5  # words; what is left of a shorter one may be anything


class HeldOutEvaluator(CheckpointEvaluator):
    """Scores a model on unrated sentences; the trainer keeps the one that tells damaged copies apart best.

    Each sentence gets a copy with words left out, chosen by the seed once and for all. Metrics, each under
    `NAME_`:

    * `separation`, which it selects by: how many standard deviations the cosine of a copy and its own
      sentence lies above the cosines of copies and other sentences (see the function of that name);
    * `retrieval`: the mean reciprocal rank, times 100, of a copy's own sentence among all;
    * `alignment` of copies and sentences, `uniformity` of the sentences (Wang and Isola 2020; lower is
      better).

    The trainer puts `eval_` before them.

    Why separation: over 65 encoders made from all-MiniLM-L6-v2 (its layers, mean or first token, and five
    degrees of noise in the weights; 500 Wikipedia sentences, rate 0.4) its rank correlation with the Spearman
    score on STS-B dev was 0.93. That of retrieval was 0.86, and 0.12 among the better half, where it is at
    its ceiling; of alignment plus uniformity 0.77; of alignment alone below 0. Separation came to 0.67 among
    the better half: it knows a broken model from a good one, and is a weak judge between good ones. Where
    rated pairs are at hand, take `StsDevEvaluator`.
    """

    def __init__(
        self,
        sentences: Sequence[str],
        *,
        name: str = "held_out",
        rate: float = 0.4,
        limit: int = 1000,
        seed: int = 0,
        batch_size: int = 32,
        precision: Precision | None = None,
    ) -> None:
        """Choose the sentences and damage them.

        Args:
            sentences: sentences that training does not see; those of fewer than five words, and repeats, are
                left out.
            name: comes before each metric; "" for nothing.
            rate: the share of the words that a copy lacks, between 0 and 1; one word at least.
            limit: no more sentences than these, drawn by the seed.
            seed: of the draw and of the words.
            batch_size: sentences a batch.
            precision: None or "fp32", or "bf16" for bfloat16 autocast.

        Raises:
            ValueError: fewer than two sentences are left, or the rate is not between 0 and 1.
        """
        super().__init__("separation", name, precision)
        if not 0 < rate < 1:
            raise ValueError(f"rate is {rate}; give a share of the words between 0 and 1.")
        usable = [s for s in dict.fromkeys(sentences) if len(s.split()) >= _SHORTEST]
        if len(usable) < 2:
            raise ValueError(
                f"Selection on held-out sentences needs two different ones of {_SHORTEST} words or "
                f"more, and there are {len(usable)}. Hold out more."
            )
        chance = random.Random(seed)
        self.sentences = usable if len(usable) <= limit else chance.sample(usable, limit)
        self.copies = [damaged(sentence, rate, chance) for sentence in self.sentences]
        self.rate, self.seed = rate, seed
        self._cache = TokenCache([*self.sentences, *self.copies], batch_size)

    @property
    def description(self) -> str:
        """One sentence on what it selects by."""
        return (
            f"Separation of {len(self.sentences)} held-out sentences from each other by copies without "
            f"{self.rate:.0%} of their words (no ratings)"
        )

    def metrics(self, model: SentenceTransformer) -> dict[str, float]:
        """Separation, retrieval and the geometry."""
        vectors, _ = self._cache.vectors(model, self.precision)
        originals, copies = np.split(vectors, 2)  # each (S, D)
        return {
            "separation": separation(copies, originals),
            "retrieval": 100 * reciprocal_rank(copies, originals),
            "alignment": alignment(originals, copies),
            "uniformity": uniformity(originals),
        }

    def get_config_dict(self) -> dict[str, Any]:
        """What the model card says about it."""
        return {"sentences": len(self.sentences), "rate": self.rate, "seed": self.seed}


def damaged(sentence: str, rate: float, chance: random.Random) -> str:
    """The sentence without a share of its words, one at least, drawn without regard to their places.

    >>> damaged("one two three four five", 0.2, random.Random(0))
    'one two three five'
    """
    words = sentence.split()
    lost = set(chance.sample(range(len(words)), max(1, round(rate * len(words)))))
    return " ".join(word for i, word in enumerate(words) if i not in lost)


def reciprocal_rank(queries: np.ndarray, targets: np.ndarray) -> float:
    """The mean of 1 / rank of row i of the targets for row i of the queries, by cosine, among all targets.

    Args:
        queries, targets: (S, D) each.

    Returns:
        From about log(S) / S (chance) to 1. Ties rank behind all their equals, so that a collapsed model gets
        1 / S and not 1.
    """
    cosines = _cosines(queries, targets)  # (S, S)
    # Rounding must not decide a tie: a collapsed model has all cosines equal but for the last bit.
    ranks = (cosines >= np.diag(cosines)[:, None] - 1e-6).sum(axis=1)
    return float((1 / ranks).mean())


def separation(queries: np.ndarray, targets: np.ndarray) -> float:
    """How far row i of the targets stands out for row i of the queries, in standard deviations.

    The mean over i of (cos(q_i, t_i) - m) / s, where m and s are the mean and the standard deviation of all
    cos(q_i, t_j) with j other than i. Unlike alignment it does not reward a model whose vectors all lie in
    one narrow cone, and unlike a rank it has no ceiling.

    Args:
        queries, targets: (S, D) each, S at least 2.

    Returns:
        0 for chance and for a collapsed model; all-MiniLM-L6-v2 has 8.6 at rate 0.4.
    """
    cosines = _cosines(queries, targets)  # (S, S)
    own = np.diag(cosines)
    others = cosines[~np.eye(len(cosines), dtype=bool)]  # (S * (S - 1),)
    spread = float(others.std())
    # Below this the differences are rounding errors.
    return float((own.mean() - others.mean()) / spread) if spread > 1e-6 else 0.0


def _cosines(queries: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """All cosines of two sets of rows: (S, D), (S, D) -> (S, S) float64."""
    wide = [side.astype(np.float64) for side in (queries, targets)]
    left, right = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12) for side in wide)
    return left @ right.T
