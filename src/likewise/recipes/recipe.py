"""The definition of a recipe, and the preparation of a training, which the stages of its recipe change.

Nothing here imports torch before a run is made ready, and no recipe of this library does: options and their help do not
wait for it.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.encoder.location import check_loadable
from likewise.recipes.collator import Collator, Reading, TextCollator, Views
from likewise.recipes.recipe_options import ContrastiveOptions, HeadOptions, SharpOptions, TrainingOptions, WithPresets
from likewise.runs.cache import cached
from likewise.runs.options import OptionError
from likewise.runs.progress import Progress
from likewise.runs.releases import releases
from likewise.runs.whole_files import Values

if TYPE_CHECKING:
    import numpy as np
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from torch import nn
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler

    from likewise.corpus import PreparedCorpus
    from likewise.evaluation.checkpoint import CheckpointEvaluator

    Optimizers = tuple[Optimizer | None, LRScheduler | None]

_AT_A_TIME = 10_000  # rows in memory
_MEASURED = 500
"""Number of sentences on which the need of a first stage is measured if nothing selects the checkpoint."""


@dataclass(frozen=True)
class Run:
    """A training in preparation. Each stage of its recipe receives it and returns it with some attributes changed.

    Attributes:
        recipe: Recipe that is trained.
        options: Options of the recipe.
        base: Model from which the encoder is built: the given base, or the model of an earlier stage.
        seed: Random seed.
        corpus: All sentences.
        rows: Sentences to train on, with 'sentence', 'words', and the columns that stages add.
        evaluator: Evaluator that selects the checkpoint; None for the last checkpoint.
        progress: Progress of the work.
        train: Function from the run of an earlier stage, and whether it is needed, to that run's model in the cache, or
            to None. The model must exist.
        encoder: Encoder to train; None until it is built.
    """

    recipe: Recipe
    options: Any
    base: str
    seed: int
    corpus: PreparedCorpus
    rows: Dataset
    evaluator: CheckpointEvaluator | None
    progress: Progress
    train: Callable[[Run, Callable[[], bool]], str | None]
    encoder: Any = None

    def but(self, **changes: Any) -> Run:
        """Return the run with some of its attributes changed."""
        return dataclasses.replace(self, **changes)

    def built(self, *arguments: object) -> Run:
        """Return the run with its encoder, whose random parts (a training head) are determined by the seed.

        Args:
            arguments: Further arguments of the recipe's `build_encoder`.
        """
        from transformers import set_seed

        from likewise.runs import processes

        with processes.in_turn():
            set_seed(self.seed)
            encoder = self.recipe.build_encoder(self.base, self.options, *arguments)
            if isinstance(self.options, SharpOptions) and self.options.lora:
                from likewise.encoder.settings import add_adapter

                add_adapter(encoder, self.options.lora)
            return self.but(encoder=encoder)

    def built_from_sentences(self) -> Run:
        """Return the run with an encoder of the words of the sentences, which `build_encoder` also receives."""
        return self.built(self.rows["sentence"])

    def sample(self, size: int) -> np.ndarray:
        """Return the sorted indices of `size` random rows, which the seed determines; all rows for 0."""
        return sample_rows(len(self.rows), size, self.seed, 2)

    def prepared(self, key: Sequence[object], make: Callable[[Path], object]) -> Path:
        """Return the cache folder of a preparation of the sentences (see `likewise.runs.cache.cached`).

        An interruption preserves the work that `make` has done.

        Args:
            key: Everything that determines the content in addition to the recipe and the sentences of the rows.
            make: Function that writes the content into a folder.
        """
        from likewise.runs import processes

        digest = blake2b(digest_size=16)
        for sentence in self.sentences():
            digest.update(f"{sentence}\n".encode("utf-8", "surrogatepass"))
        with processes.in_turn():
            return cached("stages", [self.recipe.name, digest.hexdigest(), *key, *releases()], make, resumes=True)

    def sentences(self) -> Iterator[str]:
        """Yield the sentences of the rows."""
        for start in range(0, len(self.rows), _AT_A_TIME):
            yield from self.rows[start : start + _AT_A_TIME]["sentence"]

    def trained_first(self, recipe: Recipe, needed: Callable[[], bool], **options: Any) -> Run:
        """Return the run with another recipe's model of the same corpus as its base, if that is needed.

        It is trained from the base to its last checkpoint, and cached for every seed and every later run.

        Args:
            recipe: Recipe to train first.
            needed: Function that returns whether it is needed; it is called if the model is not cached.
            options: Options of that recipe, which override its first preset.
        """
        chosen = recipe.options(**options, select_by="last")
        first = self.but(recipe=recipe, options=chosen, rows=self.corpus.dataset, evaluator=None, seed=1)
        model = self.train(first, needed)
        return self.but(base=model) if model else self

    def is_behind_base(self) -> bool:
        """Return whether the encoder that is built from the base scores below the base by more than the noise.

        The score is the criterion that selects the checkpoint, or, if there is none, the separation of corrupted copies
        of the sentences.
        """
        from likewise.evaluation.checkpoint import sentences_evaluator
        from likewise.inference.load_model import load

        evaluator = self.evaluator
        if evaluator is None:
            evaluator = sentences_evaluator(self.corpus.dataset[: 2 * _MEASURED]["sentence"], limit=_MEASURED)
        metric = evaluator.primary_metric
        with self.progress.bar("first stage: test whether it is needed"):
            own, own_items = evaluator(load(self.base, precision="fp32"))[metric], evaluator.items
            built = evaluator(self.recipe.build_encoder(self.base, self.options).eval())[metric]
        noise, name = evaluator.noise(own_items, evaluator.items) or 0.0, self.recipe.name
        self.progress.tell(f"{metric}: {own:.4g} by the base's own vector, {built:.4g} by {name} before training")
        return evaluator.gain(built, own) > noise


@dataclass(frozen=True)
class Recipe(WithPresets):
    """A training method for plain text, which defines the encoder, the views of a sentence, and the loss.

    Other packages register recipes by entry points of the group `likewise.recipes`.

    >>> from likewise.losses import functional
    >>> from likewise.recipes.recipe_options import AdamWOptions
    >>> def twice(rows):
    ...     sentences = [row["sentence"] for row in rows]
    ...     return {"first": sentences, "second": sentences}
    >>> def nt_xent(loss, first, second):
    ...     return functional.arccon(loss.vectors(first), loss.vectors(second), 0.0, 0.05)
    >>> recipe = Recipe("twins", "Dropout twins.", "an example", {"default": AdamWOptions()}, views=twice, loss=nt_xent)
    >>> recipe.options(batch_size=8).batch_size
    8

    Args:
        views: Function from corpus rows ({'sentence', 'words'}) to texts by column, as in `TextCollator`; it is called
            with (rows), or with (rows, options, seed) if it has these parameters.
        loss: Loss of a batch: a function of an `EncoderLoss` and the tokens of each column, which returns a scalar, or
            the weighted parts of the loss by name. A class is instantiated for each training, so it can have state.
        distils: Whether the encoder is trained, without dropout, towards a `FrozenCopy` among its modules; without
            `loss`, the vectors of the copy are the targets.
        build_encoder: Function from (base, options) to a SentenceTransformer; by default the base's own pooling, with
            the dropout of `ContrastiveOptions`, or the pooling and the head of `HeadOptions`.
        build_collator: Function from (encoder, options, seed) to a function from rows to a batch, for batches that
            `views` cannot express.
        build_loss: Function from (encoder, options) to a loss of sentence-transformers, for losses that `loss` cannot
            express.
        stages: Functions from a run to a run, which are called one after the other before the training and change its
            base, rows or columns. `Run.built` among the stages calls `build_encoder` before a long stage; otherwise,
            the encoder is built last.
        check_base: Function of (base, options) that is called before the corpus is read and raises a LikewiseError for
            a base that the recipe cannot use. By default, the base must be a model.
        build_optimizer: Function from (encoder, options, number of updates) to an optimizer and its schedule; (None,
            None) uses AdamW.
        default_base: Default of the argument `base`.
        modules: Classes of the package's own modules in a saved encoder, which `likewise.load` accepts, or their dotted
            names, which are imported on demand.
        mathematics: Version of the equations. Raise it if the same options and seed give another model; published
            tables then ignore earlier measurements.
    """

    views: Callable[..., Values] | None = None
    loss: Callable[..., Any] | None = None
    distils: bool = False
    build_encoder: Callable[..., SentenceTransformer] = lambda base, options: _usual_encoder(base, options)
    build_collator: Callable[[SentenceTransformer, Any, int], Collator] = None  # type: ignore[assignment]  # made of `views`
    build_loss: Callable[[SentenceTransformer, Any], nn.Module] = None  # type: ignore[assignment]  # made of `loss`
    stages: tuple[Callable[[Run], Run], ...] = ()
    check_base: Callable[[str, Any], object] = lambda base, options: check_encoder(base)
    build_optimizer: Callable[[SentenceTransformer, Any, int], Optimizers] = lambda *_: (None, None)
    default_base: str = "bundled:minilm"
    modules: tuple[type | str, ...] = ()
    mathematics: int = 1

    def __post_init__(self) -> None:
        """Make what was not given of `views` and `loss`, again in each copy by `dataclasses.replace`."""
        no_views = not self.views and self.build_collator is None
        if no_views or (not self.loss and self.build_loss is None and not self.distils):
            raise OptionError(f"recipe {self.name}: it needs views (or build_collator) and loss (or build_loss)")
        for name, usual in (("build_collator", _usual_collator), ("build_loss", _usual_loss)):
            builder = getattr(self, name)
            if builder is None or getattr(builder, "func", None) is usual:
                object.__setattr__(self, name, partial(usual, self))


def check_encoder(base: str, verb: str = "training on sentences", **refused: str) -> None:
    """Check that a base is a model that can be trained on sentences alone, without loading it.

    Args:
        base: Folder, name of the hub, or `bundled:NAME`.
        verb, refused: As in `likewise.encoder.settings.ModelSettings.check`.

    Raises:
        LoadError: If there is no such model, or one of its settings is not supported.
    """
    check_loadable(base)
    from likewise.encoder.settings import ModelSettings

    refused = {"routes": "sentences have no sides; `finetune triplets` trains both routes"} | refused
    ModelSettings.named(base).check(base, verb, **refused)


def sample_rows(n_rows: int, size: int, *seed: int) -> np.ndarray:
    """Return the sorted numbers of `size` random rows, the same ones for the same seed; all rows for 0."""
    import numpy as np

    if not size or size >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:size])


def _usual_encoder(base: str, options: TrainingOptions) -> SentenceTransformer:
    from likewise.encoder.build import build_encoder

    if isinstance(options, HeadOptions):
        return build_encoder(base, options.pooling, options.head, options.dropout)
    return build_encoder(base, "own", False, options.dropout if isinstance(options, ContrastiveOptions) else None)


def _usual_collator(recipe: Recipe, encoder: SentenceTransformer, options: TrainingOptions, seed: int) -> Collator:
    reading = Reading.of(encoder, options.max_length)
    return TextCollator(_views_of_rows(recipe, options, seed), reading, recipe=recipe.name, alike=True)


def _views_of_rows(recipe: Recipe, options: TrainingOptions, seed: int) -> Views:
    """Return the views of a recipe as a function of the rows alone, whether or not they take options and seed too."""
    views = recipe.views
    assert views is not None
    for more in ((options, seed), ()):
        try:
            inspect.signature(views).bind([], *more)
        except TypeError:
            continue
        return lambda rows: views(rows, *more)
    raise OptionError(f"recipe {recipe.name}: views must take (rows) or (rows, options, seed)")


def _usual_loss(recipe: Recipe, encoder: SentenceTransformer, options: TrainingOptions) -> nn.Module:
    from likewise.losses.encoder_loss import DistillationLoss, EncoderLoss

    equation = recipe.loss() if isinstance(recipe.loss, type) else recipe.loss
    return (DistillationLoss if recipe.distils else EncoderLoss)(encoder, options, equation)
