"""The finished parts of a job, and saved states of a loop: files written atomically and verified before their reuse."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING

from likewise.runs.whole_files import Record, written_whole

if TYPE_CHECKING:
    from torch import Tensor

_INDEX = "parts.jsonl"
_STATES = 2


class Parts:
    """Named files in a folder, with the facts and the checksum of each.

    A part counts once its line is in the index, which is only ever appended to; after a kill, a line that was cut in
    two is ignored. Parts that are missing or whose bytes have changed do not count, so that they are made again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: dict[str, Record] = {}
        for line in _lines(folder / _INDEX):
            self.facts[line["name"]] = line
        self.facts = {name: line for name, line in self.facts.items() if self._is_whole(name, line)}

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
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 16):
            digest.update(block)
    return digest.hexdigest()


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
    """Restore the random states that `chance` returned; those of GPUs only where there are some."""
    import torch

    torch.set_rng_state(states[0])
    if torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states[1:])
