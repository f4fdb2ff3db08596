"""The start of a training: its base, or its newest intact checkpoint."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from likewise.runs.job import JobError, complete_installation, read_record
from likewise.runs.parts import checksum, is_sealed, seal
from likewise.runs.whole_files import read_json, write_json

_OF_A_MODEL = (".safetensors", ".bin", ".json", ".txt", ".model")
_NOT_OF_A_MODEL = ("likewise.json", "trainer_state.json")


def base_fingerprint(base: str, out: str | os.PathLike[str] | None = None) -> Any:
    """Return the checksum of a local base's weights, vocabulary and settings, or the name of another base.

    Args:
        out: the folder to write. Where it is the base, and the job that replaces it was killed in the middle of its
            installation, the base of that job is meant.
    """
    path = Path(base).expanduser()
    if out is not None and path.resolve() == Path(out).resolve() and (record := complete_installation(out)):
        return record["plan"]["inputs"].get("base")
    if path.is_file():
        return checksum(path)
    found = [
        f"{one.relative_to(path).as_posix()} {checksum(one)}"
        for one in (sorted(path.rglob("*")) if path.is_dir() else ())
        if one.suffix in _OF_A_MODEL
        and one.name not in _NOT_OF_A_MODEL
        # Those of an unfinished job, and of a training's checkpoints, are not the model's.
        and not any(part.startswith(".") or part == "checkpoints" for part in one.relative_to(path).parts)
    ]
    return blake2b("\n".join(found).encode(), digest_size=16).hexdigest() if found else base


def made_by(base: str) -> dict[str, Any] | None:
    """Return the record of the base, if it is a model made by likewise."""
    try:
        made = read_record(Path(base))
    except (OSError, JobError):
        return None
    kept = ("recipe", "preset", "base", "base_run", "seed", "steps", "best")
    found = {key: made.get(key) for key in kept}
    return found | {"corpus": {"sha256": (made.get("corpus") or {}).get("sha256")}} if made else None


def newest_checkpoint(folder: Path) -> tuple[Path | None, int]:
    """Return the newest intact checkpoint with its step; (None, 0) if there is none.

    One that was cut by a kill or has changed since is removed, and so is one whose best checkpoint is gone.
    """
    steps = {int(one.name.rpartition("-")[2]): one for one in folder.glob("checkpoint-*")}
    for step, one in sorted(steps.items(), reverse=True):
        if is_sealed(one) and _best_is_whole(one):
            return one, step
        shutil.rmtree(one)
    return None, 0


@contextmanager
def reading_checkpoint(checkpoint: str | None) -> Iterator[None]:
    """Raise a JobError for whatever goes wrong in a `with` block that loads a checkpoint's state.

    The checksums were right, so that a kill or a damaged disk is not the cause.
    """
    try:
        yield
    except (UnpicklingError, RuntimeError, KeyError, TypeError, ValueError, AttributeError, EOFError) as error:
        raise JobError(
            f"{checkpoint} does not hold the state of this training ({type(error).__name__}): it was made elsewhere "
            "or changed. Start again with --overwrite"
        ) from error


def _best_is_whole(checkpoint: Path) -> bool:
    """Return whether the best checkpoint, according to a checkpoint's state, is there and intact."""
    state = read_json(checkpoint / "trainer_state.json")
    if not state.get("best_model_checkpoint"):
        return True
    best = checkpoint.with_name(Path(state["best_model_checkpoint"]).name)
    if str(best) != state["best_model_checkpoint"]:  # the folder was moved
        write_json(checkpoint / "trainer_state.json", state | {"best_model_checkpoint": str(best)})
        seal(checkpoint)
    return best == checkpoint or is_sealed(best)
