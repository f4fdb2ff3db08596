"""The folder of a pipeline: a folder a stage, written by rename, with a record of what it was made from.

    runs/contexts/
      index/            chunks, retrieval and record.json
      discriminator/    ...
      .harvest.part/    a stage under way, or stopped: the same command goes on with it

A record holds the stage's options, the versions of the packages, and the fingerprint of every input. A stage made from
what has changed since is stale: whoever asks for it is told so, and how to make it again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.context.errors import ContextError
from likewise.runs.whole_files import write_json

COMMANDS: dict[str, str] = {
    "index": "index --corpus FILES",
    "discriminator": "train discriminator",
    "generators": "train generators",
}
"""Stage to the words after `likewise context` that make it; a new stage is one line."""

FORMAT = 1
"""A part of every plan: raise it when the same options and inputs give other files."""

_RECORD, _PLAN = "record.json", "plan.json"


@dataclass(frozen=True)
class Stage:
    """A finished stage.

    Attributes:
        name: of the stage.
        folder: its files.
        record: options, versions, inputs, fingerprint, seconds, and the facts it told.
    """

    name: str
    folder: Path
    record: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """Equal for equal content."""
        return self.record["fingerprint"]

    @property
    def facts(self) -> dict[str, Any]:
        """What the stage told of itself."""
        return self.record["facts"]


@dataclass
class StageWork:
    """A stage under way.

    Attributes:
        name: of the stage.
        folder: where it writes; holds what an earlier, stopped run of the same plan left.
    """

    name: str
    folder: Path
    _target: Path
    _plan: dict[str, Any]
    _begun: float

    def finish(self, facts: Mapping[str, Any] | None = None, fingerprint: str | None = None) -> Stage:
        """Put the stage in its place.

        Args:
            facts: plain values to keep in the record.
            fingerprint: of the content; without it, of the plan.
        """
        from likewise.runs.provenance import machine, versions

        record = {
            **self._plan,
            "fingerprint": fingerprint or fingerprint_of(self._plan),
            "facts": dict(facts or {}),
            "seconds": round(time.time() - self._begun, 1),
            "versions": versions(),
            "machine": machine(),
        }
        write_json(self.folder / _RECORD, record)
        old = self._target.with_name(f".{self.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        if self._target.exists():
            self._target.rename(old)
        self.folder.rename(self._target)
        (self._target / _PLAN).unlink()  # not before: without it a stopped stage is thrown away
        shutil.rmtree(old, ignore_errors=True)
        return Stage(self.name, self._target, record)


class Workspace:
    """The stages of one folder.

    Args:
        path: the folder, made where it is not there.

    Raises:
        ContextError: the path is a file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.is_file():
            raise ContextError(f"--work {self.path} is a file: give a folder")

    def find(self, stage: str) -> Stage | None:
        """A finished stage, stale or not; None where there is none."""
        folder = self.path / stage
        try:
            record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ContextError(f"{folder / _RECORD}: damaged ({error}): {self._again(stage)}") from None
        return Stage(stage, folder, record)

    def require(self, stage: str) -> Stage:
        """A finished stage whose inputs are still what they were.

        Raises:
            ContextError: it was not made yet, it is stale, or one of its inputs is.
        """
        found = self.find(stage)
        if found is None:
            begun = " (begun, not finished)" if self._part(stage).is_dir() else ""
            command = f"likewise context {COMMANDS.get(stage, stage)} --work {self.path}"
            raise ContextError(f"{self.path} holds no {stage}{begun}: make it first with '{command}'")
        for name, fingerprint in found.record["inputs"].items():
            if name in COMMANDS and self.require(name).fingerprint != fingerprint:
                raise ContextError(
                    f"{found.folder} is stale: it was made from another {name} than {self.path / name} is now: "
                    f"{self._again(stage)}"
                )
        return found

    def begin(
        self,
        stage: str,
        options: Any,
        needs: Sequence[str] = (),
        sources: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> StageWork | Stage:
        """Open a stage for writing.

        Args:
            stage: its name.
            options: the dataclass of its options.
            needs: the stages it reads.
            sources: fingerprints of what it reads from elsewhere, by name.
            overwrite: make anew what is finished or stopped; what is finished stays until the new one is.

        Returns:
            The work to do, or the finished stage where the same was made before from the same inputs.

        Raises:
            ContextError: an input is missing or stale; or other options or inputs made what lies there.
        """

        inputs = dict(sources or {}) | {name: self.require(name).fingerprint for name in needs}
        # By way of JSON, so that it equals what is read back from a record: a tuple becomes a list.
        plan = json.loads(
            json.dumps({"stage": stage, "format": FORMAT, "options": dataclasses.asdict(options), "inputs": inputs})
        )
        found = self.find(stage)
        part = self._part(stage)
        if not overwrite and found is not None:
            if changes := differences(found.record, plan):
                raise ContextError(f"{found.folder} was made with other {changes}: {self._again(stage)}")
            return found
        if part.exists():
            stopped = _read_plan(part / _PLAN)
            if overwrite or stopped is None:
                shutil.rmtree(part)
            elif changes := differences(stopped, plan):
                raise ContextError(
                    f"{part} holds a stopped run with other {changes}: use the same to go on with it, "
                    "or --overwrite to begin anew"
                )
        part.mkdir(parents=True, exist_ok=True)
        if not (part / _PLAN).exists():
            write_json(part / _PLAN, plan)
        return StageWork(stage, part, self.path / stage, plan, time.time())

    def _part(self, stage: str) -> Path:
        return self.path / f".{stage}.part"

    def _again(self, stage: str) -> str:
        command = f"likewise context {COMMANDS.get(stage, stage)} --work {self.path} --overwrite"
        return f"make it again with '{command}', or use another --work"


def fingerprint_of(content: Any) -> str:
    """SHA-256 of plain values, as hex digits.

    >>> fingerprint_of({"a": 1, "b": 2}) == fingerprint_of({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What differs between two plans, for a message; "" where nothing does.

    >>> differences({"options": {"size": 1}, "inputs": {}}, {"options": {"size": 2}, "inputs": {}})
    'options (size: 1, now 2)'
    """
    found = []
    if old.get("format") != new.get("format"):
        found.append(f"format ({old.get('format')}, now {new.get('format')})")
    for kind in ("options", "inputs"):
        before, now = old.get(kind, {}), new.get(kind, {})
        changed = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
        if changed and kind == "options":
            values = (f"{name}: {before.get(name)}, now {now.get(name)}" for name in changed)
            found.append(f"options ({', '.join(values)})")
        elif changed:
            found.append(f"inputs ({', '.join(changed)})")
    return " and ".join(found)


def _read_plan(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
