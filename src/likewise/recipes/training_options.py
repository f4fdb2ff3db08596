"""The options that every recipe shares."""

from typing import Literal

from likewise.encoder.poolings import TEMPLATE, OwnOrMode, split_template
from likewise.runs.options import OptionError, Options, option

__all__ = [
    "AdamWOptions",
    "ContrastiveOptions",
    "HeadOptions",
    "OptionError",
    "PairedPromptOptions",
    "PromptOptions",
    "SharpOptions",
    "TrainingOptions",
    "option",
]

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
    keep_base_if_better: bool = option(
        False, "Save the unchanged base unless training improves the selection measure by more than its noise."
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
        if self.keep_base_if_better and self.select_by == "last":
            raise OptionError(
                "keep_base_if_better compares with the base, and select_by=last measures nothing: drop one"
            )
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
