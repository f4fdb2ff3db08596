"""The options that every recipe shares, and how an option is written once for Python and the command line."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal, Self, TypeVar

Precision = Literal["auto", "fp32", "bf16"]


class OptionError(ValueError):
    """An option that does not exist, is out of range or contradicts another; the message names the cure."""


def option(default: Any, help: str) -> Any:
    """A dataclass field with the text that `--help` and the docs show."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, kw_only=True)
class Options:
    """What every set of options can do: refuse what is out of range, give a changed copy, and become a record.

    Raises:
        OptionError: a value that is not among the choices of its option.
    """

    def __post_init__(self) -> None:
        for item in fields(self):
            choices = choices_of(type(self), item.name)
            if choices and getattr(self, item.name) not in choices:
                raise OptionError(f"{item.name} is one of {', '.join(choices)}, not {getattr(self, item.name)!r}")

    def _positive(self, *names: str) -> None:
        for name in names:
            if not getattr(self, name) > 0:
                raise OptionError(f"{name} must be above 0, not {getattr(self, name)}")

    def _not_negative(self, *names: str) -> None:
        for name in names:
            if not getattr(self, name) >= 0:
                raise OptionError(f"{name} must be 0 or more, not {getattr(self, name)}")

    def updated(self, **changes: Any) -> Self:
        """A copy with some options changed.

        Raises:
            OptionError: there is no such option (the message lists those there are), or the copy is not valid.
        """
        known = {item.name for item in fields(self)}
        if unknown := sorted(set(changes) - known):
            raise OptionError(
                f"there is no option {', '.join(unknown)} in {type(self).__name__}; "
                f"there are {', '.join(sorted(known))}"
            )
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """All options by name, for the run's record."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Options):
    """How a run is optimised; the methods' own options are added by subclasses.

    Raises:
        OptionError: a value out of range, or two that contradict each other.
    """

    batch_size: int = option(64, "Sentences of a forward pass; the others in it are the negatives.")
    accumulation: int = option(1, "Forward passes of one update; negatives stay within each pass.")
    learning_rate: float = option(3e-5, "Peak learning rate.")
    epochs: int = option(1, "Passes over the corpus.")
    max_steps: int = option(0, "Stop after this many updates; 0: as many as the epochs hold.")
    warmup_ratio: float = option(0.0, "Share of the updates in which the rate rises from 0.")
    schedule: Literal["linear", "cosine", "constant"] = option("linear", "Course of the learning rate after warm-up.")
    weight_decay: float = option(0.0, "Decoupled weight decay of AdamW.")
    max_grad_norm: float = option(1.0, "Gradients are clipped to this norm; 0: never.")
    sam_rho: float = option(0.05, "Radius of sharpness-aware minimisation, in weight norm; 0: plain AdamW.")
    sam_every: int = option(1, "One update of so many is sharpness-aware and costs two; the others are plain.")
    max_length: int = option(0, "Tokens kept of a sentence in training; 0: as many as the base reads.")
    length_batches: bool = option(True, "Batches of sentences of near-equal length.")
    eval_steps: int = option(125, "Updates between two evaluations; 0: only at the end.")
    select_by: Literal["auto", "sts-b-dev", "held-out", "last"] = option(
        "auto",
        "What picks the checkpoint: STS-B dev, held-out sentences of the corpus, or simply the last one.",
    )
    held_out: int = option(500, "Sentences held out of training where the selection needs them.")
    precision: Precision = option(
        "auto", "bf16 where the processor is made for it (auto), or always this. Checkpoints are scored in fp32."
    )

    def __post_init__(self) -> None:
        self._positive("batch_size", "accumulation", "learning_rate", "epochs", "held_out", "sam_every")
        self._not_negative("max_steps", "weight_decay", "max_grad_norm", "sam_rho", "max_length", "eval_steps")
        if not 0 <= self.warmup_ratio < 1:
            raise OptionError(f"warmup_ratio is a share in [0, 1), not {self.warmup_ratio}")
        super().__post_init__()
        if self.max_length and self.max_length < 3:
            raise OptionError("max_length counts the two special tokens, so it is 3 or more (or 0)")


_O = TypeVar("_O", bound=Options)


def of_preset(owner: str, presets: Mapping[str, _O], name: str | None = None, **changes: Any) -> _O:
    """The options of a preset (the first one by default) with changes.

    Raises:
        OptionError: `owner` has no such preset or option, or values do not go together.
    """
    name = name or next(iter(presets))
    if name not in presets:
        raise OptionError(f"{owner} has no preset {name!r}; there are {', '.join(presets)}")
    return presets[name].updated(**changes)


def choices_of(options: type[Options], name: str) -> tuple[str, ...]:
    """The values an option may take, where its type is a Literal; else ().

    >>> choices_of(TrainingOptions, "schedule")
    ('linear', 'cosine', 'constant')
    """
    kind: Any = options
    hint = _hints(kind)[name]
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


@cache
def _hints(options: Any) -> dict[str, Any]:
    # Reading them anew takes longer than all else that an options class does.
    return typing.get_type_hints(options)
