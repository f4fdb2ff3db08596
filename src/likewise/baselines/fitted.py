"""Baselines that fit a module to the vectors of a corpus: whitening, and a normalizing flow.

Su et al. 2021, "Whitening Sentence Representations for Better Semantics and Faster Retrieval": a linear map that gives
the vectors zero mean and identity covariance. It is saved as a stock Dense module behind the encoder, so that plain
SentenceTransformer(folder) loads the model. Li et al. 2020, "On the Sentence Embeddings from Pre-trained Language
Models" (BERT-flow): a flow under which the vectors are Gaussian, fitted by maximum likelihood and saved as a module of
likewise. The encoder is not changed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense
from torch import nn

from likewise.baselines.method import Baseline, BaselineError, Pooled, pooled_encoder
from likewise.encoder.normalizing_flow import Coupling, NormalizingFlow, require_zuko
from likewise.errors import counted
from likewise.inference.encoding import encode
from likewise.recipes.recipe import sample_rows
from likewise.runs.options import Options, option
from likewise.runs.progress import Progress

SMALLEST_DEVIATION = 1e-4
"""Directions along which a sample deviates less than this share of its numbers' root mean square are left out.

A layer norm leaves such directions. Scaled up to variance 1 they would be the rounding of float32, of 6e-8 a number.
"""


class WhiteningOptions(Options):
    """The options of whitening."""

    pooling: Pooled = option("first-last", "Vectors that are mapped; own: those that the base gives as a model.")
    dimensions: int = option(0, "Numbers of a vector kept, those of the largest variance; 0: all.", ge=0)
    sentences: int = option(20_000, "Sentences drawn from the corpus to fit on; 0: all.", ge=0)
    batch_size: int = option(64, "Sentences encoded at a time.", gt=0)


class FlowOptions(Options):
    """The options of the flow; defaults from the authors' code where it has the same part."""

    pooling: Pooled = option("last-two", "Vectors that are mapped; own: those that the base gives as a model.")
    steps: int = option(9, "Couplings of the flow.", gt=0)
    hidden: int = option(256, "Size of the hidden layer of each coupling's network.", gt=0)
    coupling: Coupling = option("additive", "Whether a coupling only shifts numbers, or also scales them.")
    learning_rate: float = option(1e-3, "Rate of Adam.", gt=0)
    epochs: int = option(1, "Passes over the vectors.", gt=0)
    flow_batch_size: int = option(32, "Vectors of an update of the flow.", gt=0)
    sentences: int = option(20_000, "Sentences drawn from the corpus to fit on; 0: all.", ge=0)
    batch_size: int = option(64, "Sentences encoded at a time.", gt=0)


def fitted(
    fit: Callable[[np.ndarray, Any, int, Progress], nn.Module],
) -> Callable[[str, Any, Sequence[str], int, Progress], SentenceTransformer]:
    """Return what builds an encoder followed by a module that is fitted to its vectors of a sample of sentences.

    Args:
        fit: from vectors (N, D) float32, options, seed and progress to the module.
    """

    def build(base: str, options: Any, sentences: Sequence[str], seed: int, progress: Progress) -> SentenceTransformer:
        encoder = pooled_encoder(base, options.pooling)
        sample = [sentences[int(row)] for row in sample_rows(len(sentences), options.sentences, seed, 3)]
        vectors = encode(encoder, sample, batch_size=options.batch_size, progress=progress)
        return SentenceTransformer(modules=[*encoder.children(), fit(vectors, options, seed, progress)])

    return build


def fit_whitening(vectors: np.ndarray, dimensions: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Fit the map y = (x - mean) matrix, with the covariance C = U S U^T and matrix = U S^(-1/2) (equation 6).

    The covariance of the sample is that of N - 1, as numpy's.

    Args:
        vectors: (N, D), N above D: of fewer, a covariance has no inverse.
        dimensions: K; 0 keeps all directions that vary at all.

    Returns:
        The mean (D,) and the matrix (D, K), float64; its columns are in the order of falling variance.
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
    return found.mean_, (found.components_[:kept] / np.sqrt(found.explained_variance_[:kept, None])).T


def _whitening(vectors: np.ndarray, options: WhiteningOptions, *_: Any) -> Dense:
    """Return the map as a linear layer without activation: weight (K, D) and bias (K,) in float32."""
    mean, matrix = fit_whitening(vectors, options.dimensions)
    weight, bias = (torch.from_numpy(values.astype(np.float32)) for values in (matrix.T, -mean @ matrix))
    size, kept = matrix.shape
    return Dense(size, kept, activation_function=nn.Identity(), init_weight=weight, init_bias=bias)


def fit_flow(vectors: np.ndarray, options: FlowOptions, seed: int, progress: Progress) -> NormalizingFlow:
    """Fit a flow to vectors (N, D) by maximum likelihood, reproducibly for a seed."""
    count, size = vectors.shape
    sample = torch.from_numpy(vectors)
    if count < options.flow_batch_size:
        raise BaselineError(
            f"the text's {counted(count, 'sentence')} cannot fill a batch of {options.flow_batch_size}: "
            "give more text, or a smaller flow_batch_size"
        )
    batches = count // options.flow_batch_size
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        flow = NormalizingFlow(size, options.steps, options.hidden, options.coupling)
        flow.standardise_by(sample)
        optimizer = torch.optim.Adam(flow.parameters(), lr=options.learning_rate)
        with progress.bar("fitting the flow", options.epochs * batches) as bar:
            for _ in range(options.epochs):
                order = torch.randperm(count)
                for batch in range(batches):
                    rows = order[batch * options.flow_batch_size : (batch + 1) * options.flow_batch_size]
                    loss = -flow.log_prob(sample[rows]).mean() / size  # nats a number
                    if not torch.isfinite(loss):
                        raise BaselineError("the flow's likelihood is not finite: give a smaller learning_rate")
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    bar.advance()
    return flow.eval()


WHITENING = Baseline(
    name="whitening",
    summary="Vectors of mean zero and covariance one on the corpus (BERT-whitening).",
    source="Su et al. 2021, BERT-whitening",
    presets={"paper": WhiteningOptions()},
    build=fitted(_whitening),
    corpus="required",
)
FLOW = Baseline(
    name="flow",
    summary="A normalizing flow under which the corpus's vectors are Gaussian (BERT-flow).",
    source="Li et al. 2020, BERT-flow",
    presets={"paper": FlowOptions()},
    build=fitted(fit_flow),
    corpus="required",
    check=require_zuko,
)
