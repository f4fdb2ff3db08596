"""Whitening: a linear map that gives the vectors of a corpus zero mean and identity covariance.

Su et al. 2021, "Whitening Sentence Representations for Better Semantics and Faster Retrieval". The map is saved as a
stock module: plain SentenceTransformer(folder) loads a model with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compared.baselines import Baseline, BaselineError
from compared.sentence_vectors import Pooled, fitted
from likewise.recipes import option
from likewise.runs.options import Options

if TYPE_CHECKING:
    import numpy as np
    from sentence_transformers.sentence_transformer.modules import Dense

SMALLEST_DEVIATION = 1e-4
"""Directions along which a sample deviates less than this share of its numbers' root mean square are skipped.

A layer norm leaves such directions. Scaled up to variance 1 they would be the rounding of float32, of 6e-8 a number.
"""


class WhiteningOptions(Options):
    """The options of whitening."""

    pooling: Pooled = option("first-last", "Vectors to transform; 'own' takes the base's sentence vectors.")
    dimensions: int = option(0, "Number of dimensions to keep, those with the largest variance; 0 keeps all.", ge=0)
    sentences: int = option(20_000, "Sentences sampled from the corpus to fit on; 0 takes all.", ge=0)
    batch_size: int = option(64, "Batch size for encoding.", gt=0)


def fit_whitening(vectors: np.ndarray, dimensions: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Fit the map y = (x - mean) matrix, with the covariance C = U S U^T and matrix = U S^(-1/2) (equation 6).

    The covariance of the sample divides by N - 1, as in numpy.

    Args:
        vectors: (N, D), N above D: of fewer, a covariance has no inverse.
        dimensions: K; 0 keeps all directions that vary at all.

    Returns:
        The mean (D,) and the matrix (D, K), float64; its columns are in the order of falling variance.
    """
    import numpy as np
    from sklearn.decomposition import PCA

    count, size = vectors.shape
    if count <= size:
        raise BaselineError(
            f"whitening {size} dimensions needs more than {size:,} sentences, not {count:,}: give more text, or "
            "raise `sentences`"
        )
    sample = vectors.astype(np.float64)
    found = PCA(svd_solver="covariance_eigh").fit(sample)
    smallest = SMALLEST_DEVIATION**2 * np.mean(sample**2)
    varying = int((found.explained_variance_ > smallest).sum())
    if dimensions > varying:
        raise BaselineError(
            f"dimensions is {dimensions}, and the vectors of this base vary in {varying} directions: give at most "
            f"{varying}"
        )
    kept = dimensions or varying
    return found.mean_, (found.components_[:kept] / np.sqrt(found.explained_variance_[:kept, None])).T


def _whitening(vectors: np.ndarray, options: WhiteningOptions, *_: Any) -> Dense:
    """Return the map as a linear layer without activation: weight (K, D) and bias (K,) in float32."""
    import numpy as np
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense

    mean, matrix = fit_whitening(vectors, options.dimensions)
    weight, bias = (torch.from_numpy(values.astype(np.float32)) for values in (matrix.T, -mean @ matrix))
    size, kept = matrix.shape
    return Dense(size, kept, activation_function=torch.nn.Identity(), init_weight=weight, init_bias=bias)


WHITENING = Baseline(
    name="whitening",
    summary="Vectors of mean zero and covariance one on the corpus (BERT-whitening).",
    source="Su et al. 2021, BERT-whitening",
    presets={"paper": WhiteningOptions()},
    build=fitted(_whitening),
    corpus="required",
)
