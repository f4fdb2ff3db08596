"""The checkpoints of a training: the newest intact checkpoint, and errors of damaged ones."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError

from likewise.runs.job import JobError
from likewise.runs.whole_files import is_sealed, read_json, seal, write_json


def newest_checkpoint(folder: Path) -> tuple[Path | None, int]:
    """Return the newest intact checkpoint with its step; (None, 0) if there is none.

    Truncated or modified checkpoints are removed, as are checkpoints whose best checkpoint is missing.
    """
    steps = {int(path.name.rpartition("-")[2]): path for path in folder.glob("checkpoint-*")}
    for step, path in sorted(steps.items(), reverse=True):
        if is_sealed(path) and _best_is_whole(path):
            return path, step
        shutil.rmtree(path)
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
            f"{checkpoint} does not contain the state of this training ({type(error).__name__}): it was created "
            f"elsewhere or changed. Start again with --overwrite"
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
