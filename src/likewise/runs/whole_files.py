"""Files that are written atomically: to a temporary file in the same folder, which is then renamed.

The finished parts of a job, and saved states of a loop, are verified by their checksums before their reuse.
"""

import errno
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b, file_digest
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from likewise.errors import LikewiseError

if TYPE_CHECKING:
    from torch import Tensor

Record = dict[str, Any]  # a JSON object: what a file or a line of one says, or is to say, by name
Values = Mapping[str, Any]  # a record, or the like, that is only read
UNFINISHED_FILE = ".*.part"
"""A pattern for the names of temporary files."""
_LONGEST_NAME = 50  # characters of a file's name in the name of its temporary file, which may have 255 bytes in total
_FULL = re.compile(
    r"No space left on device|os error 28|Disk quota exceeded|disk is full|StreamWriter failed writing|"
    r"requested and \d+ written|iostream error|unexpected pos \d+ vs"
)
_INDEX = "parts.jsonl"
_STATES = 2


class FullDiskError(LikewiseError, OSError):
    """Raised if a file cannot be written for lack of room; the message names it and the cure."""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Provide an empty temporary file in the same folder, renamed to `path` at the end and removed after an error.

    Its name cannot be guessed, and it is rebuilt (O_EXCL, no link is followed): in a folder where others may write,
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
            raise FullDiskError(f"{path}: the disk is full: free some space, or write to another disk") from error
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
    """Return whether an error, or its cause, is a full disk; many libraries wrap this error."""
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


class Parts:
    """Named files in a folder, with the facts and the checksum of each.

    A part counts once its line is in the index, which is only ever appended to; after a kill, a line that was cut in
    two is ignored. Parts that are missing or whose bytes have changed do not count, so that they are rebuilt.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lines = {str(line["name"]): line for line in _lines(folder / _INDEX)}
        self.facts = {name: line for name, line in lines.items() if self._is_whole(name, line)}

    def __contains__(self, name: str) -> bool:
        return name in self.facts

    def __len__(self) -> int:
        return len(self.facts)

    def path(self, name: str) -> Path:
        """Return the path of a part."""
        return self.folder / name

    @contextmanager
    def new(self, name: str, **facts: object) -> Iterator[Path]:
        """Provide a path to write a part to; the part is installed if the block ends without an error."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with written_whole(self.path(name)) as path:
            yield path
            line = {"name": name, "checksum": checksum(path), **facts}
        self.facts[name] = line
        with (self.folder / _INDEX).open("a", encoding="utf-8") as file:
            # A newline first: the last line may have been cut in two.
            file.write("\n" + json.dumps(line))

    def drop(self, *names: str) -> None:
        """Remove parts that are no longer valid."""
        for name in names:
            self.facts.pop(name, None)
            self.path(name).unlink(missing_ok=True)

    def _is_whole(self, name: str, line: Record) -> bool:
        path = self.path(name)
        return path.is_file() and checksum(path) == line.get("checksum")


def checksum(path: Path) -> str:
    """Return the BLAKE2 checksum of a file's bytes, as hex digits."""
    with path.open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def seal(folder: Path) -> None:
    """Write the checksums of all files of a complete folder into it."""
    with written_whole(folder / _INDEX) as path:
        files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name not in (_INDEX, path.name))
        lines = [{"name": file.relative_to(folder).as_posix(), "checksum": checksum(file)} for file in files]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def is_sealed(folder: Path) -> bool:
    """Return whether a folder was sealed and none of its files has changed."""
    lines = list(_lines(folder / _INDEX))
    return bool(lines) and len(Parts(folder)) == len(lines)


class SavedStates:
    """The states from which a loop resumes with bit-equal results: tensors and plain values by step.

    Two are kept, and a damaged one is skipped.
    """

    def __init__(self, folder: Path) -> None:
        self._parts = Parts(folder)

    def save(self, step: int, state: Record) -> None:
        """Write the state after a step."""
        import torch

        with self._parts.new(f"{step:09d}.pt") as path:
            torch.save(state, path)
        self._parts.drop(*sorted(self._parts.facts)[:-_STATES])

    def load(self) -> tuple[int, Record] | None:
        """Return step and state of the newest intact one; None if there is none."""
        import torch

        for name in sorted(self._parts.facts, reverse=True):
            try:
                return int(Path(name).stem), torch.load(self._parts.path(name), weights_only=True)
            except (UnpicklingError, RuntimeError, ValueError):  # not of this class: it is never unpickled further
                continue
        return None


def chance() -> "list[Tensor]":
    """Return the random states of torch: of the processor, and of each GPU."""
    import torch

    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [])]


def set_chance(states: "list[Tensor]") -> None:
    """Restore the random states that `chance` returned, including GPU states if there are GPUs."""
    import torch

    torch.set_rng_state(states[0])
    if torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states[1:])


def _lines(path: Path) -> Iterator[Record]:
    if not path.is_file():
        return
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
        except ValueError:  # cut in two by a kill
            continue
        # A name that leads out of the folder is not ours: parts are removed by their names.
        name = line.get("name") if isinstance(line, dict) else None
        if isinstance(name, str) and not {"..", "/"} & set(Path(name).parts):
            yield line
