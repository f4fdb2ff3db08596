"""What a recipe is: the wiring of views, encoder and loss, and the values that go with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from likewise.corpus import PreparedCorpus
from likewise.recipes.options import TrainingOptions
from likewise.runs.options import of_preset

Collator = Callable[[list[dict[str, Any]]], dict[str, Any]]


@dataclass(frozen=True)
class Recipe:
    """One method: how its encoder is built, how a batch is made of sentences, and what it is trained on.

    Args:
        name: what it is called on the command line.
        summary: one sentence.
        source: the paper.
        presets: named option sets; the first is the default.
        build_encoder: (base, options) to a SentenceTransformer.
        build_collator: (encoder, options, seed) to a function from corpus rows ({'sentence', 'words'}) to a batch.
        build_loss: (encoder, options) to a sentence-transformers loss.
        add_columns: (corpus, its training rows, options, seed, a function told how many rows were done since its last
            call) to the rows with what else the views need; None where the sentences are enough.
        build_encoder_on: (base, options, the training sentences) to a SentenceTransformer, where the corpus decides
            what the encoder holds; taken in the place of `build_encoder`.
        check_base: (base, options), called before the corpus is read: raises a ValueError for a base that cannot do.
        build_optimizer: (encoder, options, updates in all) to an optimizer and its schedule; None for AdamW.
        default_base: what the command line takes where no base is given.
    """

    name: str
    summary: str
    source: str
    presets: Mapping[str, TrainingOptions]
    build_encoder: Callable[[str, Any], Any]
    build_collator: Callable[[Any, Any, int], Collator]
    build_loss: Callable[[Any, Any], nn.Module]
    add_columns: Callable[[PreparedCorpus, Any, Any, int, Callable[[int], None]], Any] | None = None
    build_encoder_on: Callable[[str, Any, Any], Any] | None = None
    check_base: Callable[[str, Any], None] | None = None
    build_optimizer: Callable[[Any, Any, int], tuple[Any, Any]] | None = None
    default_base: str = "bundled:minilm"

    @property
    def options_type(self) -> type[TrainingOptions]:
        """The class of this recipe's options."""
        return type(next(iter(self.presets.values())))

    def encoder(self, base: str, options: TrainingOptions, sentences: Any) -> Any:
        """The untrained encoder for a corpus."""
        if self.build_encoder_on:
            return self.build_encoder_on(base, options, sentences)
        return self.build_encoder(base, options)

    def options(self, preset: str | None = None, **changes: Any) -> TrainingOptions:
        """The options of a preset (the first one by default) with changes.

        Raises:
            OptionError: no such preset or option, or values that do not go together.
        """
        return of_preset(self.name, self.presets, preset, **changes)
