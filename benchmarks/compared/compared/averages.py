"""Averages of word vectors or of layers, and [CLS]: baselines of stock modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding, WeightedLayerPooling

from compared.baselines import Baseline, BaselineError
from likewise.encoder.build import build_encoder, open_base
from likewise.encoder.location import LoadError
from likewise.encoder.modules import without_training_head
from likewise.encoder.word_vectors import build_word_vectors
from likewise.runs.options import Options, option
from likewise.runs.progress import Progress

FIRST_LAST, LAST_TWO = (1, -1), (-2, -1)
"""Layers whose mean is taken: the first and the last, and the last two."""


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
    trust_pickle: bool = option(
        False, "Whether to read word vectors in gensim's own format, a pickle, which can run any code."
    )


def word_average(
    base: str, options: WordAverageOptions, sentences: Sequence[str], seed: int, progress: Progress
) -> SentenceTransformer:
    """Return the mean of the vectors of a text's words.

    A word without a vector counts as zeros: it shortens the mean without turning it, so that every cosine equals the
    cosine of the mean over the known words, as in SentEval.
    """
    if options.weighted and not sentences:
        raise BaselineError("the option weighted needs a corpus, whose words it counts: give --corpus")
    words = build_word_vectors(base, sentences or None, **options.to_dict())
    vectors = words.vectors.weight.detach().clone()  # (V + 2, D): padding, unknown, words
    vectors[1] = 0
    tokenizer: Any = words.tokenizer
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=vectors)])


def build_layer_average(base: str, layers: Sequence[int], dropout: float | None = None) -> SentenceTransformer:
    """Return an encoder whose vector is the mean over the tokens of the mean of some hidden layers.

    It is made of stock modules, so that what is saved loads with no flag.

    Args:
        layers: 0 for the embeddings, 1 for the first layer, -1 for the last, and so on; equal ones count once.
    """
    transformer, settings = open_base(base, dropout)
    width = transformer.get_embedding_dimension()
    config = transformer.auto_model.config
    deepest = getattr(config, "num_hidden_layers", None)
    if deepest is None:
        raise LoadError(f"--base {base}: its configuration does not tell how many layers it has: take another base")
    chosen = {layer + deepest + 1 if layer < 0 else layer for layer in layers}
    if not chosen or min(chosen) < 0 or max(chosen) > deepest:
        raise LoadError(f"--base {base}: its layers are 0 to {deepest}, and {tuple(layers)} are asked for")
    if chosen == {deepest}:
        return settings.carried_by([transformer, Pooling(width, "mean", include_prompt=settings.include_prompt)])
    config.output_hidden_states = True  # saved with the model, and read again
    start = min(chosen)
    weights = torch.tensor([float(layer in chosen) for layer in range(start, deepest + 1)])
    pooling = WeightedLayerPooling(
        width,
        num_hidden_layers=deepest,
        layer_start=start,
        # Not trained: it says which layers, not how much of each.
        layer_weights=torch.nn.Parameter(weights, requires_grad=False),
    )
    mean = Pooling(width, "mean", include_prompt=settings.include_prompt)
    return settings.carried_by([transformer, pooling, mean])


def _cls(base: str, *_: object) -> SentenceTransformer:
    return without_training_head(build_encoder(base, pooling="cls", head=False))


AVERAGES = (
    Baseline(
        name="word-average",
        summary="The average of word vectors, as GloVe's.",
        source="Pennington et al. 2014, GloVe; as in Reimers and Gurevych 2019",
        presets={"paper": WordAverageOptions()},
        build=word_average,
        corpus="optional",
        default_base="bundled:glove",
        check_base=lambda base: None,  # a file, which is examined when it is read
    ),
    Baseline(
        name="last-average",
        summary="The average over the tokens of a transformer's last layer.",
        source="Reimers and Gurevych 2019, SBERT",
        presets={"paper": Options()},
        build=lambda base, *_: build_layer_average(base, (-1,)),
    ),
    Baseline(
        name="first-last-average",
        summary="The average over the tokens of a transformer's first and last layer.",
        source="Su et al. 2021, BERT-whitening; Gao et al. 2021, SimCSE",
        presets={"paper": Options()},
        build=lambda base, *_: build_layer_average(base, FIRST_LAST),
    ),
    Baseline(
        name="cls",
        summary="A transformer's last layer at [CLS].",
        source="Reimers and Gurevych 2019, SBERT",
        presets={"paper": Options()},
        build=_cls,
    ),
)
