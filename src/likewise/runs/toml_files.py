"""TOML files that a user writes, such as options and pipelines."""

import tomllib
from collections.abc import Iterable
from pathlib import Path

from likewise.errors import unread
from likewise.runs.options import OptionError, unknown_option
from likewise.runs.whole_files import Record


def read_toml(path: Path, known: Iterable[str] | None = None) -> Record:
    """Return the content of a TOML file whose top-level names are all known, if these are given."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise OptionError(f"there is no file {path}") from None
    except OSError as error:
        raise OptionError(unread(path, error, "check the path")) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} is not TOML: {error}") from None
    names = list(content if known is None else known)
    if unknown := [name for name in content if name not in names]:
        raise OptionError(f"{path}: {unknown_option(unknown[0], names)}")
    return content
