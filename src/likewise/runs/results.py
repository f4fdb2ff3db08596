"""Results of jobs: folders and files that are installed atomically and never replace other files.

A file is replaced only if likewise wrote it and it has not changed since. A marker next to the file records this,
because the cache can be cleared at any time: `.vectors.npy.likewise` for vectors.npy.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from likewise.errors import LikewiseError, first_line, is_utf8, limit_of, not_utf8
from likewise.runs.whole_files import Record, read_json, write_json, written_whole

RECORD, INSTALLING, RESULT, OLD = "likewise.json", "installing.json", "result", "old"
_LONGEST_NAME = 60
"""Characters of a result's name in the name of its note: four bytes each, of which a file system takes 255."""
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


def install(target: Path, work: Path) -> None:
    """Move the result into place. It may be killed at any moment and repeated.

    The files of the old record go first, into the working folder; `modules.json` is the last file to come.
    """
    record = _checked_record(work / INSTALLING, target, f"remove {work}")
    old = read_record(target)
    # Killed after the last step. Two quick runs have equal records too, but files to move.
    if old == record and not any((work / RESULT / name).exists() for name in record["files"]):
        return
    for name in sorted(old.get("files", []), key=lambda name: name != _LAST):
        if (target / name).exists():
            _move(target / name, work / OLD / name)
    (target / RECORD).unlink(missing_ok=True)
    for name in sorted(record["files"], key=lambda name: name == _LAST):
        if (work / RESULT / name).exists():
            if (target / name).exists():  # not in the old record, so written by another program
                _move(target / name, target / f"{name}.before")
            _move(work / RESULT / name, target / name)
    emptied = {target / parent for name in old.get("files", []) for parent in Path(name).parents} - {target}
    for folder in sorted(emptied, reverse=True):
        with suppress(OSError):  # not empty
            folder.rmdir()
    write_json(target / RECORD, record)


def read_working_file(path: Path) -> Record:
    """Return the content of a working file, {} if there is none."""
    try:
        content: Record = read_json(path)
        return content
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        if limit := limit_of(error):
            raise JobError(f"{path} cannot be read: {limit}") from None
        raise JobError(f"{path} is damaged ({first_line(error)}): discard it with --overwrite") from None


def check_results(*paths: str | os.PathLike[str] | None, overwrite: bool = False) -> None:
    """Check the files that a job is going to write; one that is None is not written.

    A file may be replaced if likewise wrote it and it was not changed since, or if it is empty. Others are replaced
    only with `overwrite`. A device, a pipe, a folder or a link never is: a rename over /dev/null would remove it.

    Raises:
        JobError: If a file may not be replaced, its folder is not there, or two of them are the same.
    """
    results = [Path(path) for path in paths if path is not None]
    for number, path in enumerate(results):
        if not path.name or "\0" in str(path) or path.is_symlink() or (path.exists() and not path.is_file()):
            raise JobError(f"{str(path)!r} is not a regular file: give the path of a file to write, and not a link")
        check_is_utf8(path)
        if not path.parent.is_dir():
            raise JobError(f"there is no folder {path.parent} to write {path.name} in: create it first")
        if any(path.resolve() == other.resolve() for other in results[:number]):
            raise JobError(f"two results would be written to {path}: give each its own file")
        if path.exists() and not overwrite and not _is_own(path):
            raise JobError(
                f"{path} exists, and was not written by likewise, or was changed since: choose another name, or "
                f"replace it with --overwrite"
            )


def check_is_utf8(path: Path) -> None:
    """Raise a JobError for a path that no record could name."""
    if not is_utf8(str(path.absolute())):
        readable_name = os.fsencode(path).decode("utf-8", "replace")
        wrong = not_utf8(str(path.absolute())).replace("rename it", "choose another")
        raise JobError(f"--out {readable_name}: the name of the file or of a folder above {wrong}")


def note_results(*paths: Path) -> None:
    """Note files that were just written as results, so that the next run may replace them."""
    for path in paths:
        with suppress(OSError):  # the result is there; without its note, the next run asks for --overwrite
            write_json(_note_of(path), _state(path))


@contextmanager
def written_result(path: Path, overwrite: bool = False) -> Iterator[Path]:
    """Provide a temporary file, as `written_whole` does, for a result that replaces no other program's file.

    Raises:
        JobError: As in `check_results`, before and after, because another process may write there in between.
    """
    check_results(path, overwrite=overwrite)
    with written_whole(path) as unfinished:
        yield unfinished
        check_results(path, overwrite=overwrite)
    note_results(path)


def _is_own(path: Path) -> bool:
    if not path.stat().st_size:
        return True
    try:
        return bool(read_json(_note_of(path)) == _state(path))
    except (OSError, ValueError):
        return False


def _note_of(path: Path) -> Path:
    """Return the path of the note on a result; a name too long for a longer one has its end alone."""
    return path.with_name(f".{path.name[-_LONGEST_NAME:]}.likewise")


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _checked_record(path: Path, folder: Path, cure: str) -> Record:
    """Return a record whose files all lie in a folder, {} if there is none: one from elsewhere may name any."""
    try:
        record: Record = read_json(path)
        if not isinstance(record["plan"], dict):
            raise TypeError("the plan is not an object")
        for name in record["files"]:
            if not (folder / name).parent.resolve().is_relative_to(folder.resolve()) or Path(name).name in ("", ".."):
                raise ValueError(f"{name!r} is outside the folder")
        return record
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        if limit := limit_of(error):
            raise JobError(f"{path} cannot be read: {limit}") from None
        raise JobError(f"{path} is damaged ({error!r}): {cure}") from None


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
