"""The baselines of this library: averages of word vectors or layers, and [CLS].

They are made of stock modules: plain SentenceTransformer(folder) loads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from likewise.errors import LikewiseError
from likewise.recipes.recipe import check_encoder
from likewise.recipes.recipe_options import WithPresets
from likewise.runs.options import Options, option
from likewise.runs.plugins import BASELINES_GROUP, Registry
from likewise.runs.progress import Progress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class BaselineError(LikewiseError):
    """Raised if a baseline cannot be made from the given input; the message names the cure."""


@dataclass(frozen=True)
class Baseline(WithPresets):
    """The definition of one baseline.

    Args:
        build: (base, options, sentences, seed, progress) to a model; `sentences` are the corpus's, in order.
        corpus: whether it is fitted to a corpus: it must be, it may be, or it is not.
        default_base: the base where none is given.
        check_base: called before the corpus is read; raises a LikewiseError for a base that cannot do.
        modules: classes of sentence-transformers modules that a model has and that the package of the baseline brings,
            or their dotted names: `likewise.load` opens a model with them.
    """

    build: Callable[[str, Any, Sequence[str], int, Progress], SentenceTransformer]
    corpus: Literal["required", "optional", "none"] = "none"
    default_base: str = "bundled:minilm"
    check_base: Callable[[str], object] = lambda base: check_encoder(
        base, "a baseline", routes="it has one vector for every text; give one of the two encoders by itself"
    )
    modules: tuple[type | str, ...] = ()


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


def _of_layers(base: str, layers: tuple[int, ...]) -> SentenceTransformer:
    from likewise.encoder.build import build_layer_average

    return build_layer_average(base, layers)


def _cls(base: str, *_: object) -> SentenceTransformer:
    from likewise.encoder.build import build_encoder
    from likewise.encoder.modules import without_training_head

    return without_training_head(build_encoder(base, pooling="cls", head=False))


_OWN = (
    Baseline(
        name="word-average",
        summary="The average of word vectors, as GloVe's.",
        source="Pennington et al. 2014, GloVe; as in Reimers and Gurevych 2019",
        presets={"paper": WordAverageOptions()},
        build=word_average,
        corpus="optional",
        default_base="bundled:glove",
        check_base=lambda base: None,  # a file, which is looked at when it is read
    ),
    Baseline(
        name="last-average",
        summary="The average over the tokens of a transformer's last layer.",
        source="Reimers and Gurevych 2019, SBERT",
        presets={"paper": Options()},
        build=lambda base, *_: _of_layers(base, (-1,)),
    ),
    Baseline(
        name="first-last-average",
        summary="The average over the tokens of a transformer's first and last layer.",
        source="Su et al. 2021, BERT-whitening; Gao et al. 2021, SimCSE",
        presets={"paper": Options()},
        build=lambda base, *_: _of_layers(base, (1, -1)),
    ),
    Baseline(
        name="cls",
        summary="A transformer's last layer at [CLS].",
        source="Reimers and Gurevych 2019, SBERT",
        presets={"paper": Options()},
        build=_cls,
    ),
)

BASELINES: dict[str, Baseline] = {baseline.name: baseline for baseline in _OWN}
"""The baselines of this library by their names. Those of other packages are registered by entry points."""

_ALL = Registry(BASELINES_GROUP, Baseline, "baseline", BASELINES)
baseline_names, find_baseline = _ALL.names, _ALL.find
