"""Atomic writing of files: to a temporary file in the same folder, then renamed."""

import errno
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from likewise.errors import LikewiseError

Record = dict[str, Any]  # a JSON object: what a file or a line of one says, or is to say, by name
Values = Mapping[str, Any]  # a record, or the like, that is only read
UNFINISHED_FILE = ".*.part"
"""A pattern for the names of temporary files."""
_LONGEST_NAME = 50  # characters of a file's name in that of its temporary file, which may have 255 bytes in all
_FULL = re.compile(
    r"No space left on device|os error 28|Disk quota exceeded|disk is full|StreamWriter failed writing|"
    r"requested and \d+ written|iostream error|unexpected pos \d+ vs"
)


class FullDiskError(LikewiseError, OSError):
    """Raised if a file cannot be written for lack of room; the message names it and the cure."""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Provide an empty temporary file in the same folder, renamed to `path` at the end and removed after an error.

    Its name cannot be guessed, and it is made anew (O_EXCL, no link is followed): in a folder where others may write,
    a link in its place would have us write over a file of ours. It ends in `.part`, so that no pattern for finished
    files finds it.
    """
    handle, name = tempfile.mkstemp(".part", f".{path.name[:_LONGEST_NAME]}.", path.parent)
    os.close(handle)
    unfinished = Path(name)
    try:
        yield unfinished
        give_usual_mode(unfinished)
        unfinished.replace(path)
    except Exception as error:
        if is_full_disk(error) and not isinstance(error, LikewiseError):
            raise FullDiskError(f"{path}: the disk is full: make room, or write to another disk") from error
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def give_usual_mode(*paths: Path) -> None:
    """Give files the mode of any new file: some libraries, as safetensors, write what only its owner may read."""
    mask = os.umask(0o077)  # to set one is the only way to read it
    os.umask(mask)
    for path in paths:
        if path.is_file() and not path.is_symlink():
            path.chmod(0o666 & ~mask)


def is_full_disk(error: BaseException | None) -> bool:
    """Return whether an error, or one behind it, is of a full disk: many libraries raise one of their own."""
    while error is not None:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or _FULL.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def write_text(path: Path, text: str) -> Path:
    """Write UTF-8 text atomically: a reader sees the old file or the complete new one."""
    with written_whole(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
    return path


def write_json(path: Path, content: object, *, strict: bool = False) -> Path:
    """Write plain values as JSON, atomically.

    Args:
        strict: NaN and infinity are a ValueError: JSON has no word for them, and other readers stumble over ours.
    """
    return write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=not strict) + "\n")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; a pipe or a device in its place, which may have no end, is a ValueError."""
    if path.exists() and not path.is_file():
        raise ValueError("it is not a file")
    return parse_json(path.read_text(encoding="utf-8"))


def parse_json(text: str) -> Any:
    """Return the content of a JSON text from elsewhere; one that is nested too deeply is a ValueError as any other."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
