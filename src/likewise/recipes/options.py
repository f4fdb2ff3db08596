"""The options that every recipe shares."""

from typing import Literal

from likewise.encoder.build import TEMPLATE, OwnOrMode, split_template
from likewise.runs.options import OptionError, Options, option

__all__ = [
    "AdamWOptions",
    "ContrastiveOptions",
    "HeadOptions",
    "OptionError",
    "PromptOptions",
    "SharpOptions",
    "TrainingOptions",
    "option",
]

TrainingPrecision = Literal["auto", "fp32", "bf16"]


class TrainingOptions(Options):
    """The options of every training; the methods' own are added by subclasses.

    One that trains by AdamW extends `AdamWOptions`, or `SharpOptions` if its updates may also be sharpness-aware.
    """

    batch_size: int = option(64, "Sentences of a forward pass.", gt=0)
    accumulation: int = option(1, "Forward passes of one update; negatives stay within each pass.", gt=0)
    learning_rate: float = option(3e-5, "Peak learning rate.", gt=0)
    epochs: int = option(1, "Passes over the corpus.", gt=0)
    max_steps: int = option(0, "Stop after this many updates; 0: as many as the epochs hold.", ge=0)
    weight_decay: float = option(0.0, "Decoupled weight decay of AdamW.", ge=0)
    max_grad_norm: float = option(1.0, "Gradients are clipped to this norm; 0: never.", ge=0)
    interpolation: float = option(
        1.0, "Where the saved weights lie between the base's (0) and the trained ones (1) (WiSE-FT).", gt=0, le=1
    )
    max_length: int = option(0, "Tokens kept of a sentence in training; 0: as many as the base reads.", ge=0)
    length_batches: bool = option(True, "Batches of sentences of near-equal length.")
    eval_steps: int = option(125, "Updates between two evaluations; 0: only at the end.", ge=0)
    select_by: Literal["auto", "sts-b-dev", "held-out", "last"] = option(
        "auto", "What picks the checkpoint: STS-B dev, held-out sentences of the corpus, or simply the last one."
    )
    keep_base_if_better: bool = option(
        False, "Save the unchanged base where training does not raise the selection's measure by more than its noise."
    )
    held_out: int = option(500, "Sentences held out of training where the selection needs them.", gt=0)
    precision: TrainingPrecision = option(
        "auto", "auto: bfloat16 if the processor is made for it, otherwise float32. Checkpoints are scored in float32."
    )

    def _check(self) -> None:
        if self.keep_base_if_better and self.select_by == "last":
            raise OptionError(
                "keep_base_if_better compares with the base, and select_by=last measures nothing: drop one"
            )
        if self.max_length and self.max_length < 3:
            raise OptionError("max_length counts the two special tokens, so it is 3 or more (or 0)")


class AdamWOptions(TrainingOptions):
    """Options of the recipes whose learning rate has a warm-up and a schedule."""

    warmup_ratio: float = option(0.0, "Share of the updates in which the rate rises from 0.", ge=0, lt=1)
    schedule: Literal["linear", "cosine", "constant"] = option("linear", "Course of the learning rate after warm-up.")


class SharpOptions(AdamWOptions):
    """Options of the recipes that can be trained by sharpness-aware minimisation (SAM)."""

    sam_rho: float = option(0.05, "Radius of sharpness-aware minimisation, in weight norm; 0: plain AdamW.", ge=0)
    sam_every: int = option(1, "Make every n-th update sharpness-aware; such an update costs as much as two.", gt=0)


class PromptOptions(SharpOptions):
    """Options of the recipes that read the hidden state at the mask of a prompt."""

    template: str = option(
        TEMPLATE, "Prompt with one X, where the sentence goes, and one [MASK], however the base writes it."
    )

    def _check(self) -> None:
        super()._check()
        split_template(self.template)


class ContrastiveOptions(AdamWOptions):
    """Options of the recipes that compare a sentence with the others of its batch."""

    batch_size: int = option(64, "Sentences of a forward pass; the others in it are the negatives.", ge=2)
    dropout: float = option(0.1, "Dropout of the encoder in training.", ge=0, lt=1)
    temperature: float = option(0.05, "Temperature tau of the contrastive loss.", gt=0)
    chunk: int = option(
        0, "Sentences encoded at a time, so that a large batch needs little memory (GradCache); 0: all at once.", ge=0
    )


class HeadOptions(ContrastiveOptions):
    """Options of the recipes that train, as SimCSE, through a head on one token's vector."""

    pooling: OwnOrMode = option(
        "cls",
        "Which token vectors make the sentence vector; own: as the base has it, and for a raw language model cls, or "
        "mean if it reads from left to right.",
    )
    head: bool = option(True, "Train through an MLP head that the saved model does not have.")
