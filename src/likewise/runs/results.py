"""Result files, of which none replaces a file that likewise did not write."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from likewise.errors import is_utf8
from likewise.runs.cache import KeptRows
from likewise.runs.installation import JobError
from likewise.runs.whole_files import written_whole


def check_results(*paths: str | os.PathLike[str] | None, overwrite: bool = False) -> None:
    """Check the files that a job is going to write; one that is None is not written.

    A file may be replaced if likewise wrote it and nobody has changed it since, or if it is empty. Others are replaced
    only with `overwrite`. A device, a pipe, a folder or a link never is: a rename over /dev/null would remove it.

    Raises:
        JobError: a file may not be replaced, its folder is not there, or two of them are the same.
    """
    results = [Path(path) for path in paths if path is not None]
    for number, path in enumerate(results):
        if not path.name or "\0" in str(path) or path.is_symlink() or (path.exists() and not path.is_file()):
            raise JobError(f"{str(path)!r} is not a file: give the name of a file to write, and no link to one")
        check_is_utf8(path)
        if not path.parent.is_dir():
            raise JobError(f"there is no folder {path.parent} to write {path.name} in: make it first")
        if any(path.resolve() == other.resolve() for other in results[:number]):
            raise JobError(f"two results would be written to {path}: give each a file of its own")
        if path.exists() and not overwrite and not _is_own(path):
            raise JobError(
                f"{path} is there, and was not written by likewise, or was changed since: choose another name, or give "
                "--overwrite to replace it"
            )


def check_is_utf8(path: Path) -> None:
    """Raise a JobError for a path that no record could name."""
    if not is_utf8(str(path.absolute())):
        shown = os.fsencode(path).decode("utf-8", "replace")
        raise JobError(f"--out {shown}: the name of the file or of a folder above is not UTF-8: choose another")


def note_results(*paths: Path) -> None:
    """Note files that were just written as results, so that the next run may replace them."""
    with closing(KeptRows("results", [])) as rows:
        rows.put({_key(path): _state(path) for path in paths})


@contextmanager
def written_result(path: Path, overwrite: bool = False) -> Iterator[Path]:
    """Provide a temporary file, as `written_whole` does, for a result that replaces no file of somebody else.

    Raises:
        JobError: as `check_results`, before and after: in between, somebody else may have written there.
    """
    check_results(path, overwrite=overwrite)
    with written_whole(path) as unfinished:
        yield unfinished
        check_results(path, overwrite=overwrite)
    note_results(path)


def _is_own(path: Path) -> bool:
    if not path.stat().st_size:
        return True
    with closing(KeptRows("results", [])) as rows:
        return bool(rows.get([_key(path)]).get(_key(path)) == _state(path))


def _key(path: Path) -> bytes:
    return os.fsencode(path.resolve())


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]
