"""The options that recipes share, and the presets of a method.

An options class has one parent, and an option is declared where every class below it has a use for it. To read an
option that only some methods have, check by `isinstance` for the class that declares it. Nothing here imports torch:
help texts need these options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from likewise.encoder.poolings import MASK, TEMPLATE, OwnOrMode, split_template
from likewise.runs.options import OptionError, Options, option
from likewise.runs.whole_files import Record, Values

TrainingPrecision = Literal["auto", "fp32", "bf16"]
TRACKERS = ("tensorboard", "wandb", "mlflow")

# The options of prompts, for classes whose parents differ.
Template = Annotated[
    str,
    Field(
        description="Prompt with one X, which represents the sentence, and one [MASK], which represents the mask "
        "token of the base. Without [MASK], the vector is the last token of a causal base, which has its own default."
    ),
]
OtherTemplate = Annotated[
    str,
    Field(
        description="Prompt of the positive and of the negation in training; if empty, the prompt of the "
        "sentence is used."
    ),
]
FinalStop = Annotated[
    bool, Field(description="Whether to append ' .' to a text without a final full stop; the saved model does so, too.")
]


@dataclass(frozen=True)
class WithPresets:
    """The base class of recipes and objectives.

    Args:
        presets: Named option sets; the first is the default.
        preset_notes: Line about each preset for the help text, with its source and its differences.
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
        """Return the options of a preset (by default the first one), or given options, with changes.

        Raises:
            OptionError: If there is no such preset or option, or the values contradict each other.
        """
        if isinstance(preset, Options):
            if not isinstance(preset, self.options_type):
                expected, other = self.options_type.__name__, type(preset).__name__
                raise OptionError(f"preset of {self.name} must be a name or {expected}(...), not {other}(...)")
            return preset.updated(**changes)
        if "epochs" in changes and "max_steps" in self.options_type.model_fields:
            # Who asks for passes over the corpus means them, and not a preset's number of updates.
            changes = {"max_steps": 0} | changes
        preset = preset or next(iter(self.presets))
        if preset not in self.presets:
            raise OptionError(f"{self.name} has no preset {preset!r}; choose one of {', '.join(self.presets)}")
        return self.presets[preset].updated(**changes)

    def preset_name(self, preset: str | Options | None) -> str:
        """Return the name of a preset for a record: of the first one for None, and "own" for options of one's own."""
        return "own" if isinstance(preset, Options) else preset or next(iter(self.presets))


class TrainingOptions(Options):
    """The options of every training; subclasses add the options of a method.

    Options of a method that uses AdamW extend `AdamWOptions`, or `SharpOptions` if it supports sharpness-aware
    minimization.
    """

    batch_size: int = option(64, "Number of sentences in a forward pass.", gt=0)
    accumulation: int = option(
        1, "Number of forward passes that are accumulated for one update; negatives come from the same pass.", gt=0
    )
    learning_rate: float = option(3e-5, "Peak learning rate.", gt=0)
    epochs: int = option(1, "Number of passes over the corpus.", gt=0)
    max_steps: int = option(0, "Maximum number of updates; 0 trains for all epochs.", ge=0)
    weight_decay: float = option(0.0, "Decoupled weight decay of AdamW.", ge=0)
    max_grad_norm: float = option(1.0, "Maximum norm to which gradients are clipped; 0 disables clipping.", ge=0)
    interpolation: float = option(
        1.0, "Position of the saved weights between the base (0) and the trained model (1), as in WiSE-FT.", gt=0, le=1
    )
    max_length: int = option(
        0, "Maximum number of tokens of a training sentence, which is truncated to it; 0 uses the base's limit.", ge=0
    )
    length_batches: bool = option(True, "Whether to batch sentences of similar length together.")
    eval_steps: int = option(125, "Number of updates between two evaluations; 0 evaluates only at the end.", ge=0)
    select_by: Literal["auto", "sts-b-dev", "held-out", "last"] = option(
        "auto",
        "Criterion that selects the checkpoint: STS-B dev, held-out sentences of the corpus, or the last checkpoint.",
    )
    held_out: int = option(500, "Number of sentences that are held out of training if the selection needs them.", gt=0)
    precision: TrainingPrecision = option(
        "auto",
        "Precision of training. auto: bfloat16 if the processor supports it natively, otherwise float32. "
        "Checkpoints are always evaluated in float32.",
    )
    report_to: str = option(
        "",
        f"Comma-separated names of trackers to which losses and scores are reported: {', '.join(TRACKERS)}.",
        exclude=True,
    )

    def _check(self) -> None:
        if unknown := [name for name in self.trackers if name not in TRACKERS]:
            raise OptionError(f"report_to knows no {unknown[0]}: choose one or more of {', '.join(TRACKERS)}")
        if self.max_length and self.max_length < 3:
            raise OptionError("max_length includes the two special tokens, so it must be 3 or more (or 0)")

    def inputs(self) -> Record:
        """Return the models and files that the options name and that determine the result, by name."""
        return {}

    @property
    def trackers(self) -> list[str]:
        """The names in `report_to`."""
        return [name.strip() for name in self.report_to.split(",") if name.strip()]


class AdamWOptions(TrainingOptions):
    """The options of recipes whose learning rate has a warm-up and a schedule."""

    warmup_ratio: float = option(
        0.0, "Fraction of the updates over which the learning rate warms up from 0.", ge=0, lt=1
    )
    schedule: Literal["linear", "cosine", "constant"] = option("linear", "Learning rate schedule after the warm-up.")


class SharpOptions(AdamWOptions):
    """The options of recipes that support sharpness-aware minimization (SAM) and adapters."""

    sam_rho: float = option(
        0.0, "Radius rho of sharpness-aware minimization (SAM), as a norm of weights; 0 uses plain AdamW.", ge=0
    )
    lora: int = option(
        0,
        "Rank of a LoRA adapter that is trained and saved instead of the transformer; 0 trains the whole transformer.",
        ge=0,
    )


class PromptOptions(SharpOptions):
    """The options of recipes that use the hidden state at the mask of a prompt."""

    template: Template = TEMPLATE
    final_stop: FinalStop = False

    def _check(self) -> None:
        super()._check()
        check_templates(self.template)


class ContrastiveOptions(SharpOptions):
    """The options of recipes that compare a sentence with the other sentences of its batch."""

    batch_size: int = option(
        64, "Number of sentences in a forward pass; the other sentences of the batch are the negatives.", ge=2
    )
    dropout: float = option(0.1, "Dropout rate of the encoder in training.", ge=0, lt=1)
    temperature: float = option(0.05, "Temperature tau of the contrastive loss.", gt=0)
    chunk: int = option(
        0,
        "Number of sentences that are encoded at a time, to save memory with a large batch (GradCache); 0 encodes all "
        "at once.",
        ge=0,
    )


class HeadOptions(ContrastiveOptions):
    """The options of recipes that train through a head on one token's vector, as SimCSE does."""

    pooling: OwnOrMode = option(
        "cls",
        "Pooling of token vectors into the sentence vector; own is the base's own pooling; for a pretrained language "
        "model, it is cls, or the last token of a prompt if the model is causal.",
    )
    head: bool = option(True, "Whether to train with an MLP head on top, which is not saved with the model.")


def check_templates(template: str, other: str = "") -> None:
    """Raise a LikewiseError if a template is malformed, or incompatible with the other template of a pair."""
    split_template(template)
    if not other:
        return
    split_template(other)
    if other == template:
        raise OptionError("other_template equals template: leave it empty")
    if (MASK in other) != (MASK in template):
        raise OptionError(
            f"template and other_template must be read at the same token: write {MASK} in both or in neither"
        )
