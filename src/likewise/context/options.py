"""The options of every stage, and the one TOML file that may hold them.

A stage's options are a frozen dataclass; its section of the file has the stage's name:

    [index]
    chunk_sentences = 10
    [discriminator]
    epochs = 2

A new stage is one line in `SECTIONS`.
"""

from __future__ import annotations

import dataclasses
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from likewise.context.errors import ContextError

SECTIONS: dict[str, str] = {
    "index": "likewise.context.options:IndexOptions",
    "discriminator": "likewise.context.options:DiscriminatorOptions",
    "selection": "likewise.context.options:SelectionOptions",
    "generators": "likewise.context.generator_options:GeneratorOptions",
    "score": "likewise.context.score:ScoreOptions",
    "harvest": "likewise.context.harvest_pairs:HarvestOptions",
}
"""Section of the file to 'module:class' of its dataclass, which is imported when the section is read."""


def option(default: Any, help: str) -> Any:
    """A dataclass field with the text that help pages show."""
    return field(default=default, metadata={"help": help})


def check(fits: bool, message: str) -> None:
    """Raise a ContextError with the message unless it fits."""
    if not fits:
        raise ContextError(message)


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """Chunks, contexts and the retrieval over them.

    Raises:
        ContextError: a value out of range.
    """

    chunk_sentences: int = option(10, "Most sentences of a chunk.")
    left: int = option(2, "Sentences of a left context, at most.")
    right: int = option(2, "Sentences of a right context, at most.")
    documents: int = option(0, "Stop after so many documents; 0: take all.")
    words: int = option(0, "Stop after the document with which so many words are reached; 0: take all.")
    hash_bits: int = option(24, "Words and bigrams are hashed to 2 to this power.")

    def __post_init__(self) -> None:
        # Of less than 5, a document of one sentence more is cut into chunks that have no context.
        check(self.chunk_sentences >= 5, f"chunk_sentences must be 5 or more, not {self.chunk_sentences}")
        for name in ("left", "right"):
            check(getattr(self, name) >= 1, f"{name} must be 1 or more, not {getattr(self, name)}")
        for name in ("documents", "words"):
            check(getattr(self, name) >= 0, f"{name} must be 0 or more, not {getattr(self, name)}")
        check(8 <= self.hash_bits <= 30, f"hash_bits must be 8 to 30, not {self.hash_bits}")


@dataclass(frozen=True, kw_only=True)
class DiscriminatorOptions:
    """The coherence discriminator (equation 1) and its training.

    Raises:
        ContextError: a value out of range.
    """

    vocabulary: int = option(16_000, "Sub-words.")
    max_tokens: int = option(32, "Sub-words read of a sentence.")
    vectors: str = option(
        "bundled:glove", "Word vectors that sub-words begin with: a file, bundled:glove, or '' for none."
    )
    embedding: int = option(150, "Numbers of a sub-word's vector; those that no word vector fills begin at random.")
    hidden: int = option(300, "LSTM units of each direction.")
    head: Literal["product", "linear"] = option("product", "What joins sentence and context.")
    start: Literal["bag-of-words", "random"] = option(
        "bag-of-words", "Begin as a similarity of weighted bags of words, or with random weights."
    )
    rank: int = option(300, "Numbers in which sentence and context meet.")
    batch_size: int = option(192, "Sentences of a step, those of whole documents.")
    epochs: int = option(1, "Passes over the training documents; 0: the start alone.")
    learning_rate: float = option(1e-4, "Peak rate of Adam; it rises over 20 steps and falls to 0.")
    max_grad_norm: float = option(1.0, "Gradients are clipped to this norm.")
    held_out: float = option(0.1, "Share of documents held out: half choose the checkpoint, half give the accuracy.")
    eval_steps: int = option(50, "Steps between two looks at the held-out documents.")
    save_seconds: float = option(60.0, "Seconds between two checkpoints to resume from.")
    seed: int = option(1, "Fixes weights, batches, the held-out documents and their negatives.")

    def __post_init__(self) -> None:
        names = "vocabulary max_tokens embedding hidden rank learning_rate max_grad_norm eval_steps".split()
        for name in names:
            check(getattr(self, name) > 0, f"{name} must be above 0, not {getattr(self, name)}")
        check(self.epochs >= 0, f"epochs must be 0 or more, not {self.epochs}")
        check(self.batch_size >= 3, f"batch_size must be 3 or more, not {self.batch_size}")
        check(0 < self.held_out < 1, f"held_out is a share between 0 and 1, not {self.held_out}")
        check_choices(self)


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """A sentence's context set (section 3.3).

    Raises:
        ContextError: a value out of range, or two that contradict each other.
    """

    strategy: Literal["two-step", "random"] = option(
        "two-step", "Retrieved, ranked and chosen as in section 3.3, or drawn at random (section 5.4)."
    )
    size: int = option(500, "Contexts of a set.")
    candidates: int = option(20_000, "Chunks that retrieval brings.")
    screened: int = option(2_000, "Contexts that the discriminator leaves for equation 3; 0: all.")
    diversity: bool = option(True, "At most one context a chunk, and the limit on overlap.")
    max_overlap: float = option(0.5, "Jaccard similarity of preceding sentences must be below it.")
    seed: int = option(1, "Fixes random contexts.")

    def __post_init__(self) -> None:
        for name in ("size", "candidates"):
            check(getattr(self, name) >= 1, f"{name} must be 1 or more, not {getattr(self, name)}")
        check(0 < self.max_overlap <= 1, f"max_overlap is above 0 and at most 1, not {self.max_overlap}")
        check(
            self.screened == 0 or self.screened >= self.size,
            f"screened {self.screened} is less than size {self.size}: raise it (or 0 for all)",
        )
        check_choices(self)


def check_choices(options: Any) -> None:
    """Raise a ContextError where an option with a Literal type has another value."""
    for name, hint in typing.get_type_hints(type(options)).items():
        choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
        value = getattr(options, name)
        check(not choices or value in choices, f"{name} is one of {', '.join(map(str, choices))}, not {value!r}")


def section_class(section: str) -> type[Any]:
    """The dataclass of a section.

    Raises:
        KeyError: there is no such section.
    """
    module, _, name = SECTIONS[section].partition(":")
    return getattr(import_module(module), name)


class Configuration:
    """The options of all stages: defaults, then the file, then single values.

    Args:
        path: the TOML file; None for none.
        assignments: 'section.key=value', the value as in TOML (a bare word is a string).

    Raises:
        ContextError: the file is no TOML, or a section, a key or a value is not one; the message names it.
    """

    def __init__(self, path: Path | str | None = None, assignments: Sequence[str] = ()) -> None:
        self._values: dict[str, dict[str, Any]] = {}
        self._origins: dict[str, list[str]] = {}
        if path is not None:
            self._read(Path(path))
        for assignment in assignments:
            self._assign(assignment)
        for section in self._values:
            self.section(section)

    def section(self, name: str) -> Any:
        """The options of a stage."""
        values = self._values.get(name, {})
        try:
            return section_class(name)(**values)
        except ValueError as error:  # each room has its own class of it
            where = " and ".join(self._origins.get(name, []))
            raise ContextError(f"{where}: [{name}] {error}" if where else str(error)) from None

    def _read(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ContextError(f"{path}: cannot be read ({error}): give a TOML file") from None
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ContextError(f"{path}: not TOML: {error}") from None
        for section, values in content.items():
            if not isinstance(values, dict):
                raise ContextError(f"{path}: key '{section}' stands in no section: put it under one of {_sections()}")
            self._take(str(path), section, values)

    def _assign(self, assignment: str) -> None:
        origin = f"--set {assignment}"
        name, equals, text = assignment.partition("=")
        section, dot, key = name.strip().partition(".")
        if not (equals and dot and key):
            raise ContextError(f"{origin}: give it as section.key=value, for example index.left=3")
        try:
            value = tomllib.loads(f"value = {text.strip()}")["value"]
        except tomllib.TOMLDecodeError:
            value = text.strip()
        self._take(origin, section, {key: value})

    def _take(self, origin: str, section: str, values: Mapping[str, Any]) -> None:
        if section not in SECTIONS:
            raise ContextError(f"{origin}: there is no section [{section}]; there are {_sections()}")
        kind = section_class(section)
        hints = typing.get_type_hints(kind)
        known = [item.name for item in dataclasses.fields(kind)]
        for key, value in values.items():
            if key not in known:
                raise ContextError(f"{origin}: there is no key '{key}' in [{section}]; there are {', '.join(known)}")
            fitting = _fit(value, hints[key])
            if fitting is None:
                kind_name = getattr(hints[key], "__name__", str(hints[key]))
                raise ContextError(f"{origin}: [{section}] {key} is a {kind_name}, not {value!r}")
            self._values.setdefault(section, {})[key] = fitting
        origins = self._origins.setdefault(section, [])
        if origin not in origins:
            origins.append(origin)


def _sections() -> str:
    return ", ".join(f"[{name}]" for name in SECTIONS)


def _fit(value: Any, hint: Any) -> Any:
    """The value as its option's type, None where it is of another; lists become tuples."""
    origin = typing.get_origin(hint)
    if origin is Literal:
        return value if isinstance(value, str) else None
    if origin is tuple:
        if not isinstance(value, list):
            return None
        inner = typing.get_args(hint)[0]
        fitting = [_fit(item, inner) for item in value]
        return None if None in fitting else tuple(fitting)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if type(value) is hint else None
