"""The folder of a pipeline: each stage is a job whose target is a folder of it.

runs/contexts/
  index/            chunks, retrieval and likewise.json
  discriminator/    ...
  harvest/

A stage's record contains the fingerprints of the stages that it was made from. A stage whose inputs were remade since
is stale: reading it is an error that names the command to rebuild it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from likewise.encoder.location import model_fingerprint
from likewise.errors import LikewiseError
from likewise.runs.job import Job, JobError, Plan, Resume, open_job, read_record, work_of
from likewise.runs.options import Options
from likewise.runs.progress import Progress
from likewise.runs.releases import versions
from likewise.runs.whole_files import Record

QUIET = Progress(quiet=True)
COMMANDS: dict[str, str] = {
    "index": "index --corpus FILES",
    "states": "train states",
    "discriminator": "train discriminator",
    "generators": "train generators",
}
"""Stage to the words after `likewise context` that make it."""


class ContextError(LikewiseError):
    """Raised if a stage of the pipeline cannot run with these options; the message names the cure."""


@dataclass(frozen=True)
class Stage:
    """A finished stage: its folder, and the record of its job."""

    name: str
    folder: Path
    record: Record

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the stage, equal for equal content."""
        return self.record["fingerprint"]


class Workspace:
    """The workspace of a pipeline: the stages of one folder.

    Args:
        path: Path to the folder, which the first stage creates.

    Raises:
        ContextError: If the path is a file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.is_file():
            raise ContextError(f"--work {self.path} is a file: give a folder")

    def require(self, stage: str) -> Stage:
        """Return a finished stage whose inputs are unchanged.

        Raises:
            ContextError: If the stage does not exist yet, or if it or one of its inputs is stale.
            JobError: If its record is damaged.
        """
        folder = self.path / stage
        record = read_record(folder)
        command = f"likewise context {COMMANDS[stage]} --work {self.path}"
        if not record:
            begun = " (started, but not finished)" if work_of(folder).exists() else ""
            raise ContextError(f"{self.path} contains no {stage}{begun}: build it with '{command}'")
        options, inputs = record["plan"]["options"], record["plan"]["inputs"]
        for name, fingerprint in inputs.items():
            if name in COMMANDS:
                changed = self.require(name).fingerprint != fingerprint
                place = str(self.path / name)
            else:  # a model, which an option names
                place = str(options.get(name, ""))
                changed = bool(place) and Path(place).expanduser().exists() and model_fingerprint(place) != fingerprint
            if changed:
                raise ContextError(
                    f"{folder} is stale, because {place} (the {name}) has changed since: rebuild it with "
                    f"'{command} --overwrite', or use another --work"
                )
        return Stage(stage, folder, record)

    @contextmanager
    def open(
        self,
        stage: str,
        options: Options,
        needs: Sequence[str] = (),
        inputs: Mapping[str, str] | None = None,
        *,
        models: Sequence[str] = (),
        resume: Resume = "auto",
        overwrite: bool = False,
    ) -> Iterator[Job]:
        """Open the job of a stage, which the caller ends by `finish` with the fingerprint among the facts.

        Args:
            needs: Names of the stages that the stage reads.
            inputs: Fingerprints of other inputs, by name.
            models: Names of the options that name a model.

        Raises:
            ContextError: If an input is missing or stale.
            JobError: If the stage was built or started with different options or inputs, or another process is building
                it.
        """
        inputs = dict(inputs or {}) | {name: self.require(name).fingerprint for name in needs}
        for name in models:
            if (content := model_fingerprint(place := str(getattr(options, name)))) != place:
                inputs[name] = content
        code = versions("context")
        plan = Plan(f"context {stage}", options.to_dict(), inputs, versions=code, defaults=options.defaults())
        try:
            with open_job(self.path / stage, plan, resume=resume, overwrite=overwrite) as job:
                yield job
        except JobError as error:
            raise JobError(str(error).replace("another --out", "another --work")) from error
