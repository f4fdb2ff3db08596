"""The definition of a recipe: its options, views, encoder, loss, stages and defaults; and the collator of a batch.

Nothing here imports torch before a run is made ready, and no recipe of this library does: options and their help do not
wait for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from likewise.encoder.location import check_loadable
from likewise.encoder.poolings import TEMPLATE, OwnOrMode, split_template
from likewise.runs.cache import cached
from likewise.runs.options import OptionError, Options, option
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record, Values

if TYPE_CHECKING:
    import numpy as np
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from torch import nn
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler
    from transformers import PreTrainedTokenizerBase

    from likewise.corpus import PreparedCorpus
    from likewise.evaluation.checkpoint import CheckpointEvaluator

    Optimizers = tuple[Optimizer | None, LRScheduler | None]

TrainingPrecision = Literal["auto", "fp32", "bf16"]
TRACKERS = ("tensorboard", "wandb", "mlflow")


class TrainingOptions(Options):
    """The options of every training; the methods' own are added by subclasses.

    One that trains by AdamW extends `AdamWOptions`, or `SharpOptions` if its updates may also be sharpness-aware.
    """

    batch_size: int = option(64, "Batch size: sentences in one forward pass.", gt=0)
    accumulation: int = option(
        1, "Forward passes that are accumulated for one update; negatives come from the same pass.", gt=0
    )
    learning_rate: float = option(3e-5, "Peak learning rate.", gt=0)
    epochs: int = option(1, "Epochs: passes over the corpus.", gt=0)
    max_steps: int = option(0, "Stop after this many updates; 0 trains for all epochs.", ge=0)
    weight_decay: float = option(0.0, "Decoupled weight decay of AdamW.", ge=0)
    max_grad_norm: float = option(1.0, "Clip gradients to this norm; 0 does not clip.", ge=0)
    interpolation: float = option(
        1.0, "Interpolate the saved weights between the base (0) and the trained model (1), as in WiSE-FT.", gt=0, le=1
    )
    max_length: int = option(0, "Truncate training sentences to this many tokens; 0 uses the base's limit.", ge=0)
    length_batches: bool = option(True, "Batch sentences of similar length together.")
    eval_steps: int = option(125, "Updates between two evaluations; 0 evaluates only at the end.", ge=0)
    select_by: Literal["auto", "sts-b-dev", "held-out", "last"] = option(
        "auto", "What picks the checkpoint: STS-B dev, held-out sentences of the corpus, or simply the last one."
    )
    held_out: int = option(500, "Sentences that are held out of training if the selection needs them.", gt=0)
    precision: TrainingPrecision = option(
        "auto", "auto: bfloat16 if the processor is made for it, otherwise float32. Checkpoints are scored in float32."
    )
    report_to: str = option(
        "", f"Trackers that get losses and scores too, with commas: {', '.join(TRACKERS)}; '' for none.", exclude=True
    )

    def _check(self) -> None:
        if unknown := [name for name in self.trackers if name not in TRACKERS]:
            raise OptionError(f"report_to knows no {unknown[0]}: there are {', '.join(TRACKERS)}")
        if self.max_length and self.max_length < 3:
            raise OptionError("max_length counts the two special tokens, so it is 3 or more (or 0)")

    @property
    def trackers(self) -> list[str]:
        """The names in `report_to`."""
        return [name.strip() for name in self.report_to.split(",") if name.strip()]


class AdamWOptions(TrainingOptions):
    """Options of the recipes whose learning rate has a warm-up and a schedule."""

    warmup_ratio: float = option(
        0.0, "Fraction of the updates over which the learning rate warms up from 0.", ge=0, lt=1
    )
    schedule: Literal["linear", "cosine", "constant"] = option("linear", "Learning rate schedule after the warm-up.")


class SharpOptions(AdamWOptions):
    """Options of the recipes that can be trained by sharpness-aware minimisation (SAM)."""

    sam_rho: float = option(
        0.05, "Radius rho of sharpness-aware minimisation (SAM), in weight norm; 0 uses plain AdamW.", ge=0
    )
    lora: int = option(
        0, "Rank of an adapter (LoRA) that is trained, and saved, in place of the transformer; 0 trains it all.", ge=0
    )


class PromptOptions(SharpOptions):
    """Options of the recipes that read the hidden state at the mask of a prompt."""

    template: str = option(
        TEMPLATE, "Prompt with one X, where the sentence goes, and one [MASK], however the base writes it."
    )
    final_stop: bool = option(False, "End a text that has no final stop with ' .'; the saved model goes on to do so.")

    def _check(self) -> None:
        super()._check()
        split_template(self.template)


class PairedPromptOptions(PromptOptions):
    """Options of the recipes that read a sentence and its positive in two prompts."""

    other_template: str = option(
        "", "Prompt of the positive and of the negation in training; empty: that of the sentence."
    )

    def _check(self) -> None:
        super()._check()
        if self.other_template:
            split_template(self.other_template)
        if self.other_template == self.template:
            raise OptionError("other_template is the template itself: leave it empty")


class ContrastiveOptions(AdamWOptions):
    """Options of the recipes that compare a sentence with the others of its batch."""

    batch_size: int = option(
        64, "Batch size: sentences in one forward pass; the other sentences of the batch are the negatives.", ge=2
    )
    dropout: float = option(0.1, "Dropout rate of the encoder in training.", ge=0, lt=1)
    temperature: float = option(0.05, "Temperature tau of the contrastive loss.", gt=0)
    chunk: int = option(
        0,
        "Sentences that are encoded at a time, to save memory with a large batch (GradCache); 0 encodes all at once.",
        ge=0,
    )


class HeadOptions(ContrastiveOptions):
    """Options of the recipes that train, as SimCSE, through a head on one token's vector."""

    pooling: OwnOrMode = option(
        "cls",
        "Which token vectors make the sentence vector; own is the base's own pooling, and for a raw language model "
        "cls, or mean if it reads from left to right.",
    )
    head: bool = option(True, "Train with an MLP head on top, which is not saved with the model.")


Views = Callable[[list[Record]], Values]
Collator = Callable[[list[Record]], Record]

_AT_A_TIME = 10_000  # rows in memory
_MEASURED = 500
"""Sentences on which the need of a first stage is measured if there is nothing else to measure by."""


@dataclass(frozen=True)
class WithPresets:
    """The base class of recipes, objectives and baselines: a way to make an encoder.

    Args:
        presets: named option sets; the first is the default.
        preset_notes: a line about each preset for the help text: where it comes from, and what is different in it.
    """

    name: str
    summary: str
    source: str
    presets: Values
    preset_notes: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def options_type(self) -> type[TrainingOptions]:
        """The class of its options."""
        return type(next(iter(self.presets.values())))

    def options(self, preset: str | Options | None = None, **changes: object) -> Any:
        """Return the options of a preset (the first one by default), or options of one's own, with changes.

        Raises:
            OptionError: no such preset or option, options of another method, or values that do not go together.
        """
        if isinstance(preset, Options):
            if not isinstance(preset, self.options_type):
                wanted, other = self.options_type.__name__, type(preset).__name__
                raise OptionError(f"preset of {self.name} must be a name or {wanted}(...), not {other}(...)")
            return preset.updated(**changes)
        if "epochs" in changes and "max_steps" in self.options_type.model_fields:
            # Who asks for passes over the corpus means them, and not a preset's number of updates.
            changes = {"max_steps": 0} | changes
        preset = preset or next(iter(self.presets))
        if preset not in self.presets:
            raise OptionError(f"{self.name} has no preset {preset!r}; there are {', '.join(self.presets)}")
        return self.presets[preset].updated(**changes)

    def preset_name(self, preset: str | Options | None) -> str:
        """Return the name of a preset for a record: of the first one for None, and "own" for options of one's own."""
        return "own" if isinstance(preset, Options) else preset or next(iter(self.presets))


@dataclass(frozen=True)
class Run:
    """A training that is being made ready. A stage of its recipe takes it and gives it back with something changed.

    Attributes:
        base: what the encoder is built from: the base that was named, or the model of an earlier stage.
        corpus: all sentences.
        rows: those to train on, with 'sentence', 'words', and the columns that stages add.
        evaluator: what selects the checkpoint; None if it is simply the last.
        train: (the run of an earlier stage, whether it is needed) to that run's model in the cache, or None. A model
            that is there already is needed.
        encoder: to be trained; None until it is built.
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
        """Return the run with its encoder, whose random parts (a training head) are fixed by the seed.

        Args:
            arguments: further ones of the recipe's `build_encoder`.
        """
        from transformers import set_seed

        from likewise.runs import processes

        with processes.in_turn():
            set_seed(self.seed)
            encoder = self.recipe.build_encoder(self.base, self.options, *arguments)
            if rank := getattr(self.options, "lora", 0):
                from likewise.encoder.settings import add_adapter

                add_adapter(encoder, rank)
            return self.but(encoder=encoder)

    def built_from_sentences(self) -> Run:
        """Return the run with an encoder whose words are those of the sentences: `build_encoder` gets them too."""
        return self.built(self.rows["sentence"])

    def sample(self, wanted: int) -> np.ndarray:
        """Return the numbers of `wanted` random rows, in order, which the seed fixes; all rows for 0."""
        return sample_rows(len(self.rows), wanted, self.seed, 2)

    def prepared(self, key: Sequence[object], make: Callable[[Path], object]) -> Path:
        """Return the folder of the cache for what a stage makes of the sentences, see `likewise.runs.cache.cached`.

        A stop keeps what `make` has done.

        Args:
            key: all that decides the content, besides the recipe and the sentences of the rows.
        """
        from likewise.runs import processes

        digest = blake2b(digest_size=16)
        for sentence in self.sentences():
            digest.update(f"{sentence}\n".encode("utf-8", "surrogatepass"))
        with processes.in_turn():
            return cached("stages", [self.recipe.name, digest.hexdigest(), *key], make, resumes=True)

    def sentences(self) -> Iterator[str]:
        """Yield the sentences of the rows."""
        for start in range(0, len(self.rows), _AT_A_TIME):
            yield from self.rows[start : start + _AT_A_TIME]["sentence"]

    def trained_first(self, recipe: Recipe, needed: Callable[[], bool], **options: Any) -> Run:
        """Return the run with another recipe's model of the same corpus as its base, if that is needed.

        It is trained from the base to its last checkpoint, and kept in the cache for every seed and every later run.

        Args:
            needed: asked if the cache does not have it.
            options: of that recipe, over those of its first preset.
        """
        chosen = recipe.options(**options, select_by="last")
        first = self.but(recipe=recipe, options=chosen, rows=self.corpus.dataset, evaluator=None, seed=1)
        model = self.train(first, needed)
        return self.but(base=model) if model else self

    def is_behind_base(self) -> bool:
        """Return whether the encoder that is built from the base scores below the base by more than the noise.

        It is measured as the checkpoints are; if nothing selects them, by copies of the corpus's own sentences.
        """
        from likewise.evaluation.checkpoint import sentences_evaluator
        from likewise.inference.load_model import load

        evaluator = self.evaluator
        if evaluator is None:
            evaluator = sentences_evaluator(self.corpus.dataset[: 2 * _MEASURED]["sentence"], limit=_MEASURED)
        metric = evaluator.primary_metric
        with self.progress.bar("first stage: is it needed?"):
            own, own_items = evaluator(load(self.base, precision="fp32"))[metric], evaluator.items
            built = evaluator(self.recipe.build_encoder(self.base, self.options).eval())[metric]
        noise, name = evaluator.noise(own_items, evaluator.items) or 0.0, self.recipe.name
        self.progress.tell(f"{metric}: {own:.4g} for the base's own vector, {built:.4g} for what {name} makes of it")
        return evaluator.gain(built, own) > noise


@dataclass(frozen=True)
class Recipe(WithPresets):
    """A method for plain text: how its encoder is built, how a batch is made of sentences, and its loss.

    A package of your own registers one by an entry point of the group `likewise.recipes`.

    Args:
        views: corpus rows ({'sentence', 'words'}) to texts by column, as in `TextCollator`.
        loss: the equation of an `EncoderLoss`: called with that loss and the tokens of each column, it returns a
            scalar, or weighted parts by name. A class is made anew for each training, so that it can count.
        distils: the encoder learns without dropout from a `FrozenCopy` among its modules; without `loss`, its vectors.
        build_encoder: (base, options) to a SentenceTransformer; by default the base's own pooling, or that of the
            options 'pooling', 'head' and 'dropout'.
        build_collator: (encoder, options, seed) to a function from rows to a batch, for what `views` cannot say.
        build_loss: (encoder, options) to a loss of sentence-transformers, for what `loss` cannot say.
        stages: what happens to a run before it is trained, one after the other: another base, other rows, more columns.
            `Run.built` among them calls `build_encoder`, before a stage that takes long; otherwise it comes last.
        check_base: (base, options), called before the corpus is read; raises a LikewiseError for a base that cannot do.
            By default, the base must be a model.
        build_optimizer: (encoder, options, updates in all) to an optimizer and its schedule; (None, None) is AdamW.
        default_base: the base where none is given.
        modules: classes of modules of the package's own that a saved encoder has, for `likewise.load`; or their names,
            with dots, so that they are imported only if they are needed.
    """

    views: Views | None = None
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

    def __post_init__(self) -> None:
        """Make what was not given of `views` and `loss`, again in each copy by `dataclasses.replace`."""
        no_views = not self.views and self.build_collator is None
        if no_views or (not self.loss and self.build_loss is None and not self.distils):
            raise OptionError(f"recipe {self.name}: it needs views (or build_collator) and loss (or build_loss)")
        for name, usual in (("build_collator", _usual_collator), ("build_loss", _usual_loss)):
            builder = getattr(self, name)
            if builder is None or getattr(builder, "func", None) is usual:
                object.__setattr__(self, name, partial(usual, self))


def _usual_encoder(base: str, options: TrainingOptions) -> SentenceTransformer:
    from likewise.encoder.build import build_encoder

    pooling: Any = getattr(options, "pooling", "own")
    return build_encoder(base, pooling, getattr(options, "head", False), getattr(options, "dropout", None))


def _usual_collator(recipe: Recipe, encoder: SentenceTransformer, options: TrainingOptions, seed: int) -> Collator:
    assert recipe.views is not None
    return TextCollator(recipe.views, Reading.of(encoder, options.max_length))


def _usual_loss(recipe: Recipe, encoder: SentenceTransformer, options: TrainingOptions) -> nn.Module:
    from likewise.losses.encoder_loss import DistillationLoss, EncoderLoss

    equation = recipe.loss() if isinstance(recipe.loss, type) else recipe.loss
    return (DistillationLoss if recipe.distils else EncoderLoss)(encoder, options, equation)


def check_encoder(base: str, verb: str = "training on sentences", **refused: str) -> None:
    """Check that a base is a model, and that sentences alone can teach it, without loading it.

    Args:
        base: a folder, a name of the hub, or `bundled:NAME`.
        verb, refused: see `likewise.encoder.settings.ModelSettings.check`.

    Raises:
        LoadError: there is no such model, or one of its settings cannot be obeyed.
    """
    check_loadable(base)
    from likewise.encoder.settings import ModelSettings

    refused = {"routes": "sentences have no sides; `finetune triplets` teaches both routes"} | refused
    ModelSettings.named(base).check(base, verb, **refused)


class Reading(NamedTuple):
    """The way in which the texts of a column are tokenised.

    Attributes:
        prompt: put before each text.
        unpooled: tokens of the prompt that the pooling leaves out; 0 where it takes them all.
    """

    tokenizer: PreTrainedTokenizerBase
    length: int
    prompt: str = ""
    unpooled: int = 0

    @classmethod
    def of(cls, encoder: Any, length: int = 0) -> Reading:
        """Return an encoder's own, with its default prompt, of at most `length` tokens (0: all that it reads)."""
        prompt = encoder.prompts.get(encoder.default_prompt_name) or ""
        left_out = prompt and any(getattr(module, "include_prompt", True) is False for module in encoder)
        unpooled = encoder.preprocess([""], prompt=prompt)["prompt_length"] if left_out else 0
        most = encoder.max_seq_length or encoder.tokenizer.model_max_length
        return cls(encoder.tokenizer, min(length or most, most), prompt, unpooled)

    @classmethod
    def prompted(cls, encoder: SentenceTransformer, length: int, template: str = "") -> Reading:
        """Return an encoder's own of at most `length` tokens, its prompt included, which must leave room.

        Args:
            template: of another prompt than the encoder's own.
        """
        own = cls.of(encoder, length)
        if template:
            from likewise.encoder.build import prompt_tokenizer

            own = own._replace(tokenizer=prompt_tokenizer(own.tokenizer, template))
        if own.length <= own.taken:
            raise OptionError(f"max_length {own.length} leaves no room: the template alone has {own.taken} tokens")
        return own

    @property
    def taken(self) -> int:
        """The tokens of an empty text: those of the prompt, and the special ones."""
        return len(self.tokenizer(self.prompt)["input_ids"])

    def tokens(self, texts: list[Any]) -> Record:
        """Tokenise texts, or take lists of token numbers, and pad them to the longest, (B, T)."""
        if isinstance(texts[0], str):
            texts = [self.prompt + text for text in texts]
            tokens = self.tokenizer(texts, padding=True, truncation=True, max_length=self.length, return_tensors="pt")
        else:
            tokens = self.tokenizer.pad({"input_ids": texts}, padding=True, return_tensors="pt")
        return {**tokens, "prompt_length": self.unpooled} if self.unpooled else tokens


@dataclass
class TextCollator:
    """A collator that makes the views of a batch and tokenises them.

    Args:
        views: rows to texts by column (or to lists of token numbers), and to tensors, which go into the batch as they
            are; an empty column is left out. The loss gets one set of features for each column, in this order.
        reading: how texts are tokenised.
        others: the columns that are tokenised in another way.
    """

    views: Views
    reading: Reading | None = None
    others: Mapping[str, Reading] = field(default_factory=dict)
    # Read by sentence-transformers' trainer; the corpus has no labels.
    valid_label_columns: tuple[str, ...] = ()

    def __call__(self, rows: list[Record]) -> Record:
        """Return {'<column>_input_ids': (rows, T), ...} for rows, padded to the longest text of each column."""
        from torch import Tensor

        batch: Record = {}
        for column, texts in self.views(rows).items():
            reading = self.others.get(column, self.reading)
            if isinstance(texts, Tensor) or reading is None:
                batch[column] = texts
            elif texts:
                batch |= {f"{column}_{name}": value for name, value in reading.tokens(texts).items()}
        return batch


def distillation_readings(
    encoder: SentenceTransformer, teacher: SentenceTransformer, max_length: int
) -> tuple[Reading, Reading]:
    """Return the readings of an encoder and of its teacher, which sees the tokens that the encoder's prompt leaves."""
    own, plain = Reading.prompted(encoder, max_length), Reading.of(teacher)
    return own, plain._replace(length=min(own.length - own.taken + plain.taken, plain.length))


def sample_rows(n_rows: int, wanted: int, *seed: int) -> np.ndarray:
    """Return the sorted numbers of `wanted` random rows, the same ones for the same seed; all rows for 0."""
    import numpy as np

    if not wanted or wanted >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:wanted])
