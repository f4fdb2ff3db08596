"""Baselines without any fitting: averages of word vectors or layers, and [CLS].

All of them are stock modules: plain SentenceTransformer(folder) loads them.
"""

from collections.abc import Sequence
from typing import Any, Literal

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from likewise.baselines.method import Baseline, BaselineError, pooled_encoder
from likewise.encoder.build import build_layer_average
from likewise.encoder.word_vectors import build_word_vectors
from likewise.runs.options import Options, option
from likewise.runs.progress import Progress


class WordAverageOptions(Options):
    """The options of the average of word vectors."""

    most_frequent: int = option(
        400_000, "Most frequent words of the file to keep, in addition to those of the corpus, if one is given.", ge=0
    )
    dimension: int = option(0, "Size that the word vectors must have; 0: any.", ge=0)
    weighted: bool = option(False, "Subtract the corpus's mean from the vectors, and make its frequent words shorter.")
    trust_pickle: bool = option(False, "Read gensim's own files of word vectors: pickles, which can run any code.")


def word_average(
    base: str, options: WordAverageOptions, sentences: Sequence[str], seed: int, progress: Progress
) -> SentenceTransformer:
    """Return the mean of the vectors of a text's words.

    A word without a vector counts as zeros: it shortens the mean and does not turn it, so that every cosine is that of
    the mean over the known words, as SentEval takes it.
    """
    if options.weighted and not sentences:
        raise BaselineError("weighted counts the words of a corpus: give --corpus")
    words = build_word_vectors(base, sentences or None, **options.to_dict())
    vectors = words.vectors.weight.detach().clone()  # (V + 2, D): padding, unknown, words
    vectors[1] = 0
    tokenizer: Any = words.tokenizer
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=vectors)])


class FirstLastOptions(Options):
    """The option of the first-last average."""

    first: Literal["layer-1", "embeddings"] = option(
        "layer-1", "The first layer: the one above the embeddings, or the embeddings."
    )


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
    build=lambda base, options, *_: build_layer_average(base, (1 if options.first == "layer-1" else 0, -1)),
)
CLS = Baseline(
    name="cls",
    summary="A transformer's last layer at [CLS].",
    source="Reimers and Gurevych 2019, SBERT",
    presets={"paper": Options()},
    build=lambda base, *_: pooled_encoder(base, "cls"),
)
