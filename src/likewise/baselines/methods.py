"""The baselines: averages of word vectors or layers, [CLS], whitening, and a normalizing flow.

Whitening (Su et al. 2021, "Whitening Sentence Representations for Better Semantics and Faster Retrieval") is a linear
map that gives the vectors of a corpus zero mean and identity covariance. The flow (Li et al. 2020, "On the Sentence
Embeddings from Pre-trained Language Models", BERT-flow) makes them Gaussian; it is fitted by maximum likelihood, and
saved as a module of likewise. All else are stock modules: plain SentenceTransformer(folder) loads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from likewise.errors import LikewiseError, counted, require_extra
from likewise.recipes.recipe import WithPresets, sample_rows
from likewise.runs.options import Options, option
from likewise.runs.progress import Progress

if TYPE_CHECKING:
    import numpy as np
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense
    from torch import nn

    from likewise.encoder.normalizing_flow import NormalizingFlow

Pooled = Literal["first-last", "last-two", "last", "cls", "own"]
"""Which vectors of a base are post-processed; 'own': those that the base gives as a model."""


SMALLEST_DEVIATION = 1e-4
"""Directions along which a sample deviates less than this share of its numbers' root mean square are left out.

A layer norm leaves such directions. Scaled up to variance 1 they would be the rounding of float32, of 6e-8 a number.
"""


class BaselineError(LikewiseError):
    """Raised if a baseline cannot be made from the given input; the message names the cure."""


@dataclass(frozen=True)
class Baseline(WithPresets):
    """The definition of one baseline.

    Args:
        build: (base, options, sentences, seed, progress) to a model; `sentences` are the corpus's, in order.
        corpus: whether it is fitted to a corpus: it must be, it may be, or it is not.
        check: called before anything is read; raises an error if a package is missing.
        default_base: the base where none is given.
    """

    build: Callable[[str, Any, Sequence[str], int, Progress], SentenceTransformer]
    corpus: Literal["required", "optional", "none"] = "none"
    check: Callable[[], None] = lambda: None
    default_base: str = "bundled:minilm"


def pooled_encoder(base: str, pooled: Pooled) -> SentenceTransformer:
    """Return the untrained encoder whose vectors are post-processed.

    Args:
        base: a Hugging Face name, a folder, or `bundled:NAME`; with 'own' also any model that `likewise.load` takes.
    """
    from likewise.encoder.build import FIRST_LAST, LAST_TWO, build_encoder, build_layer_average
    from likewise.inference.load_model import load

    if pooled == "own":
        return load(base, precision="fp32")
    if pooled == "cls":
        return build_encoder(base, pooling="cls", head=False)
    return build_layer_average(base, {"first-last": FIRST_LAST, "last-two": LAST_TWO, "last": (-1,)}[pooled])


class WordAverageOptions(Options):
    """The options of the average of word vectors."""

    most_frequent: int = option(
        400_000,
        "Number of most frequent words of the file to keep, in addition to those of the corpus if one is given.",
        ge=0,
    )
    dimension: int = option(0, "Dimensions that the word vectors must have; 0 takes any.", ge=0)
    weighted: bool = option(
        False, "Subtract the mean over the corpus from the vectors, and scale its frequent words down."
    )
    trust_pickle: bool = option(False, "Read gensim's own files of word vectors: pickles, which can run any code.")


def word_average(
    base: str, options: WordAverageOptions, sentences: Sequence[str], seed: int, progress: Progress
) -> SentenceTransformer:
    """Return the mean of the vectors of a text's words.

    A word without a vector counts as zeros: it shortens the mean and does not turn it, so that every cosine is that of
    the mean over the known words, as SentEval takes it.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from likewise.encoder.word_vectors import build_word_vectors

    if options.weighted and not sentences:
        raise BaselineError("the option weighted needs a corpus, whose words it counts: give --corpus")
    words = build_word_vectors(base, sentences or None, **options.to_dict())
    vectors = words.vectors.weight.detach().clone()  # (V + 2, D): padding, unknown, words
    vectors[1] = 0
    tokenizer: Any = words.tokenizer
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=vectors)])


class FirstLastOptions(Options):
    """The option of the first-last average."""

    first: Literal["layer-1", "embeddings"] = option(
        "layer-1", "Which layer counts as the first: the embeddings, or the layer above them."
    )


def _first_last(base: str, options: FirstLastOptions, *_: Any) -> SentenceTransformer:
    from likewise.encoder.build import build_layer_average

    return build_layer_average(base, (1 if options.first == "layer-1" else 0, -1))


WORD_AVERAGE = Baseline(
    name="word-average",
    summary="The average of word vectors, as GloVe's.",
    source="Pennington et al. 2014, GloVe; as in Reimers and Gurevych 2019",
    presets={"paper": WordAverageOptions()},
    build=word_average,
    corpus="optional",
    default_base="bundled:glove",
)
LAST_AVERAGE = Baseline(
    name="last-average",
    summary="The average over the tokens of a transformer's last layer.",
    source="Reimers and Gurevych 2019, SBERT",
    presets={"paper": Options()},
    build=lambda base, *_: pooled_encoder(base, "last"),
)
FIRST_LAST_AVERAGE = Baseline(
    name="first-last-average",
    summary="The average over the tokens of a transformer's first and last layer.",
    source="Su et al. 2021, BERT-whitening; Gao et al. 2021, SimCSE",
    presets={"paper": FirstLastOptions()},
    build=_first_last,
)
CLS = Baseline(
    name="cls",
    summary="A transformer's last layer at [CLS].",
    source="Reimers and Gurevych 2019, SBERT",
    presets={"paper": Options()},
    build=lambda base, *_: pooled_encoder(base, "cls"),
)


class WhiteningOptions(Options):
    """The options of whitening."""

    pooling: Pooled = option("first-last", "Vectors to transform; 'own' takes the base's sentence vectors.")
    dimensions: int = option(0, "Number of dimensions to keep, those with the largest variance; 0 keeps all.", ge=0)
    sentences: int = option(20_000, "Sentences sampled from the corpus to fit on; 0 takes all.", ge=0)
    batch_size: int = option(64, "Batch size for encoding.", gt=0)


class FlowOptions(Options):
    """The options of the flow; defaults from the authors' code where it has the same part."""

    pooling: Pooled = option("last-two", "Vectors to transform; 'own' takes the base's sentence vectors.")
    steps: int = option(9, "Number of coupling layers of the flow.", gt=0)
    hidden: int = option(256, "Width of the hidden layer in each coupling's network.", gt=0)
    coupling: Literal["additive", "affine"] = option(
        "additive", "Whether a coupling only shifts values or also scales them."
    )
    learning_rate: float = option(1e-3, "Learning rate of Adam.", gt=0)
    epochs: int = option(1, "Epochs: passes over the vectors.", gt=0)
    flow_batch_size: int = option(32, "Batch size of the flow's training.", gt=0)
    sentences: int = option(20_000, "Sentences sampled from the corpus to fit on; 0 takes all.", ge=0)
    batch_size: int = option(64, "Batch size for encoding.", gt=0)


def fitted(
    fit: Callable[[np.ndarray, Any, int, Progress], nn.Module],
) -> Callable[[str, Any, Sequence[str], int, Progress], SentenceTransformer]:
    """Return a function that builds an encoder followed by a module fitted to its vectors of sampled sentences.

    Args:
        fit: from vectors (N, D) float32, options, seed and progress to the module.
    """

    def build(base: str, options: Any, sentences: Sequence[str], seed: int, progress: Progress) -> SentenceTransformer:
        from sentence_transformers import SentenceTransformer

        from likewise.inference.vectors import encode

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


def fit_flow(vectors: np.ndarray, options: FlowOptions, seed: int, progress: Progress) -> NormalizingFlow:
    """Fit a flow to vectors (N, D) by maximum likelihood, reproducibly for a seed."""
    import torch

    from likewise.encoder.normalizing_flow import NormalizingFlow

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
    check=lambda: require_extra("flow", "a normalizing flow", "zuko"),
)

BASELINES: dict[str, Baseline] = {
    baseline.name: baseline for baseline in (WORD_AVERAGE, LAST_AVERAGE, FIRST_LAST_AVERAGE, CLS, WHITENING, FLOW)
}
"""Every baseline by its name."""
