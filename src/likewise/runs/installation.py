"""The installation of a job's result into a folder by moving files; safe to kill at any moment."""

import os
from contextlib import suppress
from pathlib import Path

from likewise.errors import LikewiseError, first_line
from likewise.runs.whole_files import Record, read_json, write_json

RECORD, INSTALLING, RESULT, OLD = "likewise.json", "installing.json", "result", "old"
_LAST = "modules.json"
"""Installed last and removed first: a folder without it is not a model, so half of one cannot be loaded."""


class JobError(LikewiseError):
    """Raised if a job cannot write to its target; the message names the cure."""


def read_record(target: str | os.PathLike[str]) -> Record:
    """Return the record of a finished job in a folder, {} if there is none."""
    return _checked_record(Path(target) / RECORD, Path(target), "choose another --out")


def job_of(target: str | os.PathLike[str]) -> str:
    """Return the name of the finished job in a folder, such as "index"; "" if there is none."""
    return str(read_record(target).get("plan", {}).get("job", ""))


def _checked_record(path: Path, folder: Path, cure: str) -> Record:
    """Return a record whose files all lie in a folder, {} if there is none: one from elsewhere may name any."""
    try:
        record: Record = read_json(path)
        if not isinstance(record["plan"], dict):
            raise TypeError("the plan is not an object")
        for name in record["files"]:
            if not (folder / name).parent.resolve().is_relative_to(folder.resolve()) or Path(name).name in ("", ".."):
                raise ValueError(f"{name!r} lies outside")
        return record
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise JobError(f"{path} is damaged ({error!r}): {cure}") from None


def install(target: Path, work: Path) -> None:
    """Move the result into place. It may be killed at any moment and repeated.

    The files of the old record go first, into the working folder; `modules.json` is the last file to come.
    """
    record = _checked_record(work / INSTALLING, target, f"remove {work}")
    old = read_record(target)
    if old == record:  # killed after the last step
        return
    for name in sorted(old.get("files", []), key=lambda name: name != _LAST):
        if (target / name).exists():
            _move(target / name, work / OLD / name)
    (target / RECORD).unlink(missing_ok=True)
    for name in sorted(record["files"], key=lambda name: name == _LAST):
        if (work / RESULT / name).exists():
            if (target / name).exists():  # not of the old record, so somebody else's
                _move(target / name, target / f"{name}.before")
            _move(work / RESULT / name, target / name)
    emptied = {target / parent for name in old.get("files", []) for parent in Path(name).parents} - {target}
    for folder in sorted(emptied, reverse=True):
        with suppress(OSError):  # not empty
            folder.rmdir()
    write_json(target / RECORD, record)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)


def read_working_file(path: Path) -> Record:
    """Return the content of a working file, {} if there is none."""
    try:
        content: Record = read_json(path)
        return content
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise JobError(f"{path} is damaged ({first_line(error)}): start again with --overwrite") from None
