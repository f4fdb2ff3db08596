"""The definition of a recipe: its views, encoder, loss and defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

from likewise.corpus import PreparedCorpus
from likewise.encoder.opening import check_loadable
from likewise.recipes.options import TrainingOptions
from likewise.runs.options import of_preset
from likewise.runs.progress import Progress

Collator = Callable[[list[dict[str, Any]]], dict[str, Any]]


@dataclass(frozen=True)
class WithPresets:
    """The base class of recipes, objectives and baselines: a way to make an encoder.

    Args:
        presets: named option sets; the first is the default.
    """

    name: str
    summary: str
    source: str
    presets: Mapping[str, Any]

    @property
    def options_type(self) -> type[TrainingOptions]:
        """The class of its options."""
        return type(next(iter(self.presets.values())))

    def options(self, preset: str | None = None, **changes: Any) -> Any:
        """Return the options of a preset (the first one by default) with changes.

        Raises:
            OptionError: no such preset or option, or values that do not go together.
        """
        if "epochs" in changes and "max_steps" in self.options_type.model_fields:
            # Who asks for passes over the corpus means them, and not a preset's number of updates.
            changes = {"max_steps": 0} | changes
        return of_preset(self.name, self.presets, preset, **changes)


@dataclass(frozen=True)
class FirstStage:
    """A recipe whose model is the base of another one's.

    Args:
        wanted: (base, options of the run) to whether it is made: always, never, or if the base needs it.
        options: (options of the run) to those of the stage.
    """

    recipe: Recipe
    wanted: Callable[[str, Any], Literal["auto", "always", "never"]]
    options: Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Recipe(WithPresets):
    """A method for plain text: how its encoder is built, how a batch is made of sentences, and its loss.

    A package of your own registers one by an entry point of the group `likewise.recipes`.

    Args:
        build_encoder: (base, options) to a SentenceTransformer.
        build_collator: (encoder, options, seed) to a function from corpus rows ({'sentence', 'words'}) to a batch.
        build_loss: (encoder, options) to a sentence-transformers loss.
        add_columns: (corpus, its training rows, options, seed, progress) to the rows with what else the views need.
        encoder_reads_corpus: `build_encoder` takes the training sentences as a third argument: they decide what the
            encoder holds.
        check_base: (base, options), called before the corpus is read; raises a LikewiseError for a base that cannot do.
            By default, the base must be a model.
        build_optimizer: (encoder, options, updates in all) to an optimizer and its schedule; (None, None) is AdamW.
        default_base: the base where none is given.
        first: the stage that makes its base, if there is one.
        teacher_length: (options) to the tokens that the base reads of a sentence (0: all), for a recipe that learns the
            base's vectors: its rows get them as the column 'teacher', see `likewise.training.teacher`.
    """

    build_encoder: Callable[..., Any]
    build_collator: Callable[[Any, Any, int], Collator]
    build_loss: Callable[[Any, Any], nn.Module]
    add_columns: Callable[[PreparedCorpus, Any, Any, int, Progress], Any] = lambda corpus, rows, *_: rows
    encoder_reads_corpus: bool = False
    check_base: Callable[[str, Any], Any] = lambda base, options: check_loadable(base)
    build_optimizer: Callable[[Any, Any, int], tuple[Any, Any]] = lambda *_: (None, None)
    default_base: str = "bundled:minilm"
    first: FirstStage | None = None
    teacher_length: Callable[[Any], int] | None = None
