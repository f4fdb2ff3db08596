"""The options of all stages together: presets, and the TOML file with a section for each stage.

[index]
chunk_sentences = 10
[discriminator]
epochs = 2
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from likewise.context.options import (
    LARGE,
    DiscriminatorOptions,
    GeneratorOptions,
    HarvestOptions,
    IndexOptions,
    ScoreOptions,
    SelectionOptions,
    StatesOptions,
)
from likewise.runs.options import OptionError, Options, read_toml

SECTIONS: dict[str, type[Options]] = {
    "index": IndexOptions,
    "states": StatesOptions,
    "discriminator": DiscriminatorOptions,
    "selection": SelectionOptions,
    "generators": GeneratorOptions,
    "score": ScoreOptions,
    "harvest": HarvestOptions,
}
"""Section of the file to the class of its options."""


PRESETS: dict[str, dict[str, Options]] = {
    "frozen": {},
    "paper": {
        "states": StatesOptions(keep="pieces"),
        "discriminator": DiscriminatorOptions(reads="text", epochs=1, learning_rate=1e-4),
        "generators": LARGE,
        "selection": SelectionOptions(size=500, screened=2_000),
        "score": ScoreOptions(form="paper"),
    },
}
"""Preset to the sections that differ from the defaults."""


def read_sections(
    path: Path | str | None = None, assignments: Sequence[str] = (), preset: str = "frozen"
) -> dict[str, Any]:
    """Return the options of all stages by section: a preset's, overridden by the file, then by single values.

    Args:
        path: the TOML file; None for none.
        preset: "frozen", models on the states of a frozen encoder; or "paper", those of the paper from scratch.
        assignments: 'section.name=value'.

    Raises:
        OptionError: a section, an option or a value is wrong; the message names where it was given.
    """
    if preset not in PRESETS:
        raise OptionError(f"there is no preset {preset}; there are {', '.join(PRESETS)}")
    found: dict[str, Options] = {name: kind() for name, kind in SECTIONS.items()} | PRESETS[preset]
    for section, values in (read_toml(Path(path), SECTIONS) if path is not None else {}).items():
        if not isinstance(values, dict):
            raise OptionError(f"{path}: {section} is a section: write [{section}] and its options below")
        try:
            found[section] = found[section].updated(**values)
        except OptionError as error:
            raise OptionError(f"{path}: [{section}] {error}") from None
    changes: dict[str, dict[str, str]] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        section, dot, key = (part.strip() for part in name.partition("."))
        if not (equals and dot and key):
            raise OptionError(f"--set {assignment}: give it as section.name=value, for example index.left=3")
        if section not in SECTIONS:
            raise OptionError(f"--set {assignment}: there is no section {section}; there are {', '.join(SECTIONS)}")
        changes.setdefault(section, {})[key] = text.strip()
    for section, strings in changes.items():
        try:
            found[section] = found[section].updated_from_strings(strings)
        except OptionError as error:
            given = " ".join(f"--set {section}.{name}={text}" for name, text in strings.items())
            raise OptionError(f"{given}: {error}") from None
    return found
