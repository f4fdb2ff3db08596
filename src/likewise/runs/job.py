"""A long job: its plan, a target that is written atomically, and a locked working folder to resume it from.

    runs/arc/                  a folder as the target
      .unfinished/             the working folder, only until the job is finished
        plan.json, notes.json  the plan, and facts that survive an interruption
        result/                what will be installed, when it is whole
      likewise.json            the record: plan, facts, and the names of all files that the job wrote
      ...

If the target is a file (vectors.npy), its working folder is next to it, `.vectors.npy.unfinished/`. Only files that the
record of a target lists are removed from it, and only when their successors are complete.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from filelock import BaseFileLock, FileLock, Timeout

from likewise.runs.cache import CacheError
from likewise.runs.releases import DECIDING, machine, versions
from likewise.runs.results import (
    INSTALLING,
    RESULT,
    JobError,
    check_is_utf8,
    check_results,
    install,
    note_results,
    read_record,
    read_working_file,
)
from likewise.runs.whole_files import UNFINISHED_FILE, Record, Values, give_usual_mode, is_full_disk, write_json


@dataclass(frozen=True)
class Plan:
    """The plan of a job: everything that determines its result.

    Attributes:
        job: Kind of work, in the words of the command line: "train arccse".
        options: Every option that changes the result, as plain values.
        inputs: Fingerprint of every input, by name.
        format: Version of the output, which is raised when the same options and inputs produce other files.
        versions: Releases of Python and of the packages that a result depends on.
        defaults: Values of options that an earlier plan does not name: an option that is added later has a default that
            changes nothing.
    """

    job: str
    options: Values
    inputs: Values = field(default_factory=dict)
    format: int = 1
    versions: Mapping[str, str] = field(default_factory=versions)
    defaults: Values = field(default_factory=dict)

    def to_dict(self) -> Record:
        """Return the plan without its defaults, as after a round trip through JSON: a tuple becomes a list."""
        plain: Record = json.loads(json.dumps(vars(self)))
        del plain["defaults"]
        return plain

    def difference(self, earlier: Values, *, unfinished: bool = False) -> str | None:
        """Return the first difference from an earlier plan as a clause for a message; None if there is none.

        Args:
            earlier: Output of `to_dict` at that time.
            unfinished: Whether to compare the versions of packages, too: an interrupted job only resumes to the same
                result with the same versions.

        >>> Plan("train", {"seed": 2}).difference(Plan("train", {"seed": 1}).to_dict())
        'seed 1, not 2'
        """
        now = self.to_dict()
        if earlier.get("job") != now["job"]:
            return f"{earlier.get('job')!r}, not {now['job']!r}"
        if earlier.get("format") != now["format"]:
            return f"format {earlier.get('format')}, not {now['format']}"
        added = {name: value for name, value in self.defaults.items() if name in now["options"]}
        before = {**json.loads(json.dumps(added)), **(earlier.get("options") or {})}
        for name, old, new in _changed(before, now["options"]):
            return f"{name} {old!r}, not {new!r}"
        for name, _, _ in _changed(earlier.get("inputs"), now["inputs"]):
            return f"another {name}"
        if unfinished:
            before = earlier.get("versions") or {}
            for name in DECIDING:
                if before.get(name) != now["versions"].get(name):
                    return f"{name} {before.get(name)}, not {now['versions'].get(name)}"
        return None


def _changed(old: object, new: Values) -> Iterator[tuple[str, object, object]]:
    """Yield name, old and new value of each difference; nested mappings are compared by name."""
    old = old if isinstance(old, Mapping) else {}
    for name in [*new, *(name for name in old if name not in new)]:
        before, now = old.get(name), new.get(name)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            yield from _changed(before, now)
        elif before != now:
            yield name, before, now


_UNFINISHED, _NOTES, _HOLDER = ".unfinished", "notes.json", "holder.json"
_PLANS = ("plan.json", "plan-copy.json")
_ADMINISTRATIVE = {*_PLANS, _NOTES, _HOLDER, "lock"}

TargetKind = Literal["folder", "file"]
Resume = bool | Literal["auto"]


class Job:
    """A long job, opened by `open_job`.

    Attributes:
        resumed: Whether a stopped run of the same plan is resumed.
        thrown_away: Sentence on an interrupted job that is discarded; "" for none.
        finished: Record of a finished job of the same plan; otherwise None.
    """

    def __init__(
        self, target: Path, plan: Plan, kind: TargetKind, grows: bool = False, overwrite: bool = False
    ) -> None:
        self.target, self.plan, self.kind, self.grows, self.overwrite = target, plan, kind, grows, overwrite
        self.work = work_of(target, kind)
        self.resumed = False
        self.thrown_away = ""
        self.finished: Record | None = None
        self._begun = time.monotonic()

    @property
    def result(self) -> Path:
        """The content that `finish` installs: a folder, made when it is first requested, or the path of a file."""
        path = self.work / RESULT
        if self.kind == "folder":
            path.mkdir(exist_ok=True)
        return path

    @property
    def notes(self) -> Record:
        """The facts noted so far."""
        return read_working_file(self.work / _NOTES)

    def note(self, **facts: object) -> None:
        """Add plain facts that survive a stop."""
        write_json(self.work / _NOTES, self.notes | facts)

    def discard(self) -> None:
        """Discard the work so far: the next run of the plan starts from the beginning."""
        _clear(self.work)

    def seconds(self) -> float:
        """Return the seconds of work so far, including the work before an interruption."""
        return round(float(self.notes.get("seconds", 0.0)) + time.monotonic() - self._begun, 1)

    def finish(self, facts: Mapping[str, object] | None = None) -> Record:
        """Install `result` under the target's name, remove the working folder, and return the record."""
        plan = self.plan.to_dict()
        record = {"plan": plan, "versions": plan.pop("versions"), "machine": machine(), "seconds": self.seconds()}
        record |= {**(facts or {}), "status": "finished"}
        if self.kind == "file":
            check_results(self.target, overwrite=self.overwrite)
            give_usual_mode(self.result)
            self.result.replace(self.target)
            note_results(self.target)
        else:
            for rest in self.result.rglob(UNFINISHED_FILE):  # of a write that was killed
                rest.unlink()
            files = [path for path in self.result.rglob("*") if not path.is_dir()]
            give_usual_mode(*files)
            record["files"] = sorted(path.relative_to(self.result).as_posix() for path in files)
            write_json(self.work / INSTALLING, record)
            install(self.target, self.work)
        self.finished = record
        shutil.rmtree(self.work)
        return record

    @property
    def already(self) -> str:
        """The line that says of a finished job that nothing is done."""
        return f"{self.target} is already complete; use --overwrite to rebuild it"

    def _take_up(self, record: Record) -> None:
        """Copy installed files that are missing in `result` into it."""
        for name in record.get("files", []):
            if (self.target / name).is_file() and not (self.result / name).exists():
                (self.result / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.target / name, self.result / name)

    def _begin(self, resume: Resume, overwrite: bool, completed: bool) -> None:
        """Compare the plan with the existing work, and save it.

        A job whose installation was just completed is finished, also for the command with `overwrite` that began it.
        """
        record = read_record(self.target) if self.kind == "folder" else {}
        if completed and not self.grows and not self.plan.difference(record["plan"]):
            self.finished = record
            return
        if overwrite and not self._is_unfinished_overwriting():
            if (spent := self._noted("seconds")) is not None:
                self.thrown_away = (
                    f"{self.target} contains {spent:.0f} s of work of an interrupted job, which is discarded"
                )
            _clear(self.work)
        stopped = self._stopped_plan()
        if stopped:
            if change := self.plan.difference(stopped, unfinished=True):
                raise JobError(
                    f"{self.target} contains an interrupted job with {change}: repeat these settings to "
                    f"resume it, choose another --out, or discard it with --overwrite"
                )
            self.resumed = True
        elif record and not overwrite:
            if change := self.plan.difference(record["plan"]):
                raise JobError(
                    f"{self.target} was built with {change}: choose another --out, or replace it with --overwrite"
                )
            if not self.grows:
                self.finished = record
                return
        elif resume is True:
            raise JobError(f"{self.target} contains nothing to resume: start without --resume")
        if not stopped:
            _clear(self.work)
        for name in _PLANS:
            write_json(self.work / name, stopped or self.plan.to_dict() | ({"overwrites": True} if overwrite else {}))
        if self.grows and not overwrite:
            self._take_up(record)

    def _is_unfinished_overwriting(self) -> bool:
        """Return whether there is an interrupted job of this plan that overwrites: the same command resumes it."""
        try:
            stopped = self._stopped_plan()
        except JobError:
            return False
        overwrites = stopped.get("overwrites", False) and not self._noted("failed")
        return overwrites and not self.plan.difference(stopped, unfinished=True)

    def _noted(self, name: str) -> Any:
        """Return a fact that was noted; None for none, or where the notes are damaged."""
        try:
            return self.notes.get(name)
        except JobError:
            return None

    def _stopped_plan(self) -> Record:
        """Return the plan of an interrupted job, {} for none; if its file is damaged, from the copy."""
        plan, copy = (self.work / name for name in _PLANS)
        try:
            return read_working_file(plan) or read_working_file(copy)
        except JobError:
            if copied := read_working_file(copy):
                return copied
            raise

    def _close(self, target_existed: bool) -> None:
        """Remove the working folder if it holds nothing to resume."""
        if not self.work.is_dir():
            return
        files = (path for path in self.work.rglob("*") if path.is_file() and path.name not in _ADMINISTRATIVE)
        if any(True for _ in files) or self.notes.keys() - {"seconds", "failed"}:
            with suppress(OSError):  # the disk may be full: the work is kept all the same
                self.note(seconds=self.seconds())
            return
        shutil.rmtree(self.work)
        if self.kind == "folder" and not target_existed:
            with suppress(OSError):  # it holds something by now
                self.target.rmdir()


@contextmanager
def open_job(
    target: str | os.PathLike[str],
    plan: Plan,
    *,
    resume: Resume = "auto",
    overwrite: bool = False,
    kind: TargetKind = "folder",
    grows: bool = False,
) -> Iterator[Job]:
    """Open a job in a `with` block, locked against other processes.

    Everything is checked before anything is written. Working files remain after an error or an interruption, so that
    the same command can resume; a job without working files leaves nothing behind.

    Args:
        resume: "auto" resumes an interrupted job of the same plan, or starts if there is none; True requires
            an interrupted job.
        overwrite: Whether to replace finished work, and to discard an interrupted job of another command.
        grows: Whether to reopen a finished folder of the same plan and add to it: `result` starts as a copy of it.
    """
    job = Job(Path(target), plan, kind, grows, overwrite)
    check_target(target, kind, overwrite)
    existed = job.target.exists()
    lock = _locked(job.work, job.target)
    try:
        write_json(job.work / _HOLDER, {"process": os.getpid()})
        if completed := (job.work / INSTALLING).exists():  # killed in the middle of `finish`
            install(job.target, job.work)
            _clear(job.work)
        job._begin(resume, overwrite, completed)
        yield job
    except CacheError:  # says itself which disk is full
        raise
    except JobError:
        if overwrite and job.resumed:  # its work may be damaged: the next time it starts from the beginning
            job.note(failed=True)
        raise
    except Exception as error:
        if is_full_disk(error):
            cure = "Free some space and run the same command again to resume, or choose another --out"
            raise JobError(f"{target}: the disk is full. {cure}") from error
        if isinstance(error, BrokenExecutor):
            cure = "Run the same command again to resume, with fewer processes"
            raise JobError(f"{target}: a process of this job was killed, perhaps for lack of memory. {cure}") from error
        raise
    finally:
        try:
            job._close(existed)
        finally:  # also after a second Ctrl-C
            lock.release()


def complete_installation(target: str | os.PathLike[str]) -> Record:
    """Complete the installation of a folder that was interrupted by a kill, for a job that reads it as input.

    `open_job` also does so, but only once the job's input is known, and a partly installed model is not a valid input.

    Returns:
        The record of the completed job, until `open_job` has processed it; {} if there is none.
    """
    work = work_of(target)
    if not (work / INSTALLING).exists():
        return {}
    with _locked(work, Path(target)):
        install(Path(target), work)
        return read_record(target)


def _locked(work: Path, target: Path) -> BaseFileLock:
    if work.is_symlink():  # another user's, who could make us write and remove files elsewhere
        raise JobError(f"{work} is a link that likewise did not create: remove it, or choose another --out")
    try:
        work.mkdir(parents=True, exist_ok=True)
        return FileLock(work / "lock").acquire(timeout=0).lock
    except Timeout:
        process = read_working_file(work / _HOLDER).get("process", "unknown")
        who = "another thread of this process" if process == os.getpid() else f"another process ({process})"
        raise JobError(f"{who} is writing {target}: wait for it, stop it, or choose another --out") from None
    except OSError as error:
        raise JobError(f"{target} cannot be written ({error.strerror}): choose another --out") from None


def check_target(target: str | os.PathLike[str], kind: TargetKind = "folder", overwrite: bool = False) -> None:
    """Check a target before the input is read, so that a wrong --out fails at once. Writes nothing.

    A file is checked as by `check_results`; in a folder, only files that its own record names are replaced.
    """
    path = Path(target)
    if not str(target).isprintable() and any(char < " " for char in path.name):
        raise JobError(f"--out {str(target)!r} has a control character in its name: choose another one")
    check_is_utf8(path)
    if kind == "file":
        check_results(target, overwrite=overwrite)
        return
    if not str(target) or (path.exists() and not path.is_dir()):
        raise JobError(f"--out {str(target)!r} is not a folder: give the path of a folder")
    if path.is_dir() and not read_record(path) and not work_of(path, kind).exists():
        names = sorted(entry.name for entry in path.iterdir())
        if names:
            raise JobError(f"{path} contains other files ({', '.join(names[:3])}): choose another --out")


def work_of(target: str | os.PathLike[str], kind: TargetKind = "folder") -> Path:
    """Return the working folder of a target, in which an unfinished job keeps its files."""
    path = Path(target)
    return path / _UNFINISHED if kind == "folder" else path.with_name(f".{path.name}{_UNFINISHED}")


def _clear(work: Path) -> None:
    """Empty a working folder, except for its lock."""
    for path in work.iterdir():
        if path.name in ("lock", _HOLDER):
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()
