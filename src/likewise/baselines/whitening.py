"""Whitening: a linear map that gives the vectors of a sample zero mean and identity covariance.

Su et al. 2021, "Whitening Sentence Representations for Better Semantics and Faster Retrieval". It is saved as a stock
Dense module behind the encoder, so that plain SentenceTransformer(folder) loads the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense
from torch import nn

from likewise.baselines.method import Baseline, BaselineError, Pooled, pooled_encoder, sample_vectors
from likewise.runs.options import Options, option
from likewise.runs.progress import Progress

SMALLEST_DEVIATION = 1e-4
"""Directions along which a sample deviates less than this share of its numbers' root mean square are left out.

A layer norm leaves such directions. Scaled up to variance 1 they would be the rounding of float32, of 6e-8 a number.
"""


class WhiteningOptions(Options):
    """The options of whitening."""

    pooling: Pooled = option("first-last", "Vectors that are whitened; own: those that the base gives as a model.")
    dimensions: int = option(0, "Numbers of a vector kept, those of the largest variance; 0: all.", ge=0)
    sentences: int = option(20_000, "Sentences drawn from the corpus to fit on; 0: all.", ge=0)
    batch_size: int = option(64, "Sentences encoded at a time.", gt=0)


@dataclass(frozen=True)
class Whitening:
    """The map y = (x - mean) matrix.

    Attributes:
        mean: (D,) float64.
        matrix: (D, K) float64, its columns in the order of falling variance.
    """

    mean: np.ndarray
    matrix: np.ndarray

    def dense(self) -> Dense:
        """Return the map as a linear layer without activation: weight (K, D) and bias (K,) in float32."""
        size, kept = self.matrix.shape
        return Dense(
            size,
            kept,
            activation_function=nn.Identity(),
            init_weight=torch.from_numpy(self.matrix.T.astype(np.float32)),
            init_bias=torch.from_numpy((-self.mean @ self.matrix).astype(np.float32)),
        )


def fit_whitening(vectors: np.ndarray, dimensions: int = 0) -> Whitening:
    """Fit the map: with the covariance C = U S U^T of the sample, matrix = U S^(-1/2) (equation 6).

    The covariance is that of N - 1, as numpy's.

    Args:
        vectors: (N, D), N above D: of fewer, a covariance has no inverse.
        dimensions: K; 0 keeps all directions that vary at all.
    """
    from sklearn.decomposition import PCA

    count, size = vectors.shape
    if count <= size:
        raise BaselineError(
            f"whitening {size} numbers needs more than {size:,} sentences, not {count:,}: give more text, or "
            "raise `sentences`"
        )
    sample = vectors.astype(np.float64)
    found = PCA(svd_solver="covariance_eigh").fit(sample)
    smallest = SMALLEST_DEVIATION**2 * np.mean(sample**2)
    varying = int((found.explained_variance_ > smallest).sum())
    if dimensions > varying:
        raise BaselineError(
            f"dimensions {dimensions}: the vectors of this base vary in {varying} directions; give at most {varying}"
        )
    kept = dimensions or varying
    return Whitening(found.mean_, (found.components_[:kept] / np.sqrt(found.explained_variance_[:kept, None])).T)


def build(
    base: str, options: WhiteningOptions, sentences: Sequence[str], seed: int, progress: Progress
) -> SentenceTransformer:
    """Return the encoder followed by the map."""
    encoder = pooled_encoder(base, options.pooling)
    vectors = sample_vectors(encoder, sentences, options.sentences, seed, options.batch_size, progress)
    return SentenceTransformer(modules=[*encoder.children(), fit_whitening(vectors, options.dimensions).dense()])


WHITENING = Baseline(
    name="whitening",
    summary="Vectors of mean zero and covariance one on the corpus (BERT-whitening).",
    source="Su et al. 2021, BERT-whitening",
    presets={"paper": WhiteningOptions()},
    build=build,
    corpus="required",
)
