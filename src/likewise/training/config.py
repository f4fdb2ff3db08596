"""The arguments of a training, read from and written to TOML.

    recipe = "arccse"
    corpus = ["wiki.txt.gz"]
    base = "bundled:minilm"
    out = "runs/arc"
    seed = 1

    [corpus_options]
    min_words = 5

    [options]
    margin = 10.0

`likewise.train(**read_config(path))` runs it (`likewise.finetune` where it names an objective and its rows in place of
recipe and corpus). Every finished training leaves such a file, run.toml, in its folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from likewise.corpus import CorpusOptions
from likewise.runs.options import OptionError, Options, read_toml, unknown_option

_SHARED = ("base", "out", "preset", "seed", "data", "options")
_OF_TRAIN = ("recipe", "corpus", "corpus_options", *_SHARED)
_OF_FINETUNE = ("objective", "rows", "dev", *_SHARED)
_ARGUMENTS = dict.fromkeys((*_OF_TRAIN, *_OF_FINETUNE))


def read_config(source: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `train`, or of `finetune`, from a TOML file or from its content.

    The inverse of `config_of`, but that the options are among the arguments, as `train(**found)` takes them.

    Raises:
        OptionError: the file cannot be read, a name in it does not exist, or recipe or objective is missing.
    """
    if isinstance(source, Mapping):
        found, where = dict(source), "the configuration"
    else:
        found, where = read_toml(Path(source), _ARGUMENTS), os.fspath(source)
    if ("recipe" in found) == ("objective" in found):
        raise OptionError(f"{where}: name either a recipe (for train) or an objective (for finetune)")
    known = _OF_TRAIN if "recipe" in found else _OF_FINETUNE
    if unknown := [name for name in found if name not in known]:
        raise OptionError(f"{where}: {unknown_option(unknown[0], known)}")
    for name in ("options", "corpus_options"):
        if not isinstance(found.get(name, {}), Mapping):
            raise OptionError(f"{where}: {name} is a table: write [{name}] on a separate line, its entries below")
    options = found.pop("options", {})
    if taken := [name for name in options if name in _ARGUMENTS]:
        raise OptionError(f"{where}: {taken[0]} is not an option: write it above the tables")
    if "corpus_options" in found:
        found["corpus_options"] = CorpusOptions(**found["corpus_options"])
    return found | options


def config_of(**arguments: Any) -> dict[str, Any]:
    """Return the arguments of a training as plain values that `write_toml` writes; None is left out."""
    return {name: _plain(value) for name, value in arguments.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Options):
        return value.to_dict()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return [_plain(one) for one in value]
    return value
