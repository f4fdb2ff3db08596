"""The run folder: the model, its record, its log, and the checkpoints while it is being trained.

runs/arc/
  modules.json, model.safetensors, ...   the model, as sentence-transformers loads it
  likewise.json                          recipe as used, versions, machine, seed, data hash, scores
  log.jsonl                              every loss part and score, a line each
  checkpoints/                           only until the run is finished
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.runs.whole_files import read_json, write_json


class RunFolderError(ValueError):
    """The run folder does not fit what was asked for; the message names the cure."""


@dataclass(frozen=True)
class RunFolder:
    """Paths inside a run folder, and the moves that keep it whole."""

    path: Path

    @property
    def record(self) -> Path:
        """The run's record."""
        return self.path / "likewise.json"

    @property
    def log(self) -> Path:
        """The run's log, a JSON object a line."""
        return self.path / "log.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The trainer's folder."""
        return self.path / "checkpoints"

    @property
    def is_finished(self) -> bool:
        """Whether a finished model lies here."""
        return (self.path / "modules.json").exists()

    def last_checkpoint(self) -> Path | None:
        """The newest checkpoint that was written whole, if there is one."""
        found = [
            (int(match[1]), folder)
            for folder in (self.checkpoints.iterdir() if self.checkpoints.is_dir() else ())
            # The trainer writes its state last.
            if (match := re.fullmatch(r"checkpoint-(\d+)", folder.name)) and (folder / "trainer_state.json").exists()
        ]
        return max(found)[1] if found else None

    def prepare(self, *, resume: bool, overwrite: bool) -> Path | None:
        """Make the folder ready; returns the checkpoint to go on from, if any.

        Raises:
            RunFolderError: the folder holds something that would be lost, or nothing to resume.
        """
        if self.path.is_file():
            raise RunFolderError(f"--out {self.path} is a file; give a folder")
        checkpoint = self.last_checkpoint()
        if resume:
            if self.is_finished:
                raise RunFolderError(f"the run in {self.path} is finished; there is nothing to resume")
            if checkpoint is None:
                raise RunFolderError(f"{self.path} holds no checkpoint to resume; start it without --resume")
            return checkpoint
        if self.path.is_dir() and any(self.path.iterdir()):
            ours = self.record.exists() or self.checkpoints.is_dir()
            if not overwrite or not ours:
                cure = "choose another --out"
                if ours:
                    cure += ", --overwrite to replace it" + (", or --resume to go on" if checkpoint else "")
                raise RunFolderError(f"{self.path} is not empty: {cure}")
            shutil.rmtree(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        return None

    def write_record(self, record: dict[str, Any]) -> None:
        """Write the record, by rename."""
        write_json(self.record, record)

    def read_record(self) -> dict[str, Any]:
        """The record, {} where there is none."""
        return read_json(self.record) if self.record.exists() else {}

    def install_model(self, model: Any) -> None:
        """Save a SentenceTransformer into the folder: written beside, then moved, modules.json last."""
        temporary = self.path / ".model"
        shutil.rmtree(temporary, ignore_errors=True)
        model.save_pretrained(str(temporary), create_model_card=False)
        entries = sorted(temporary.iterdir(), key=lambda entry: entry.name == "modules.json")
        for entry in entries:
            target = self.path / entry.name
            if target.is_dir():
                shutil.rmtree(target)
            entry.replace(target)
        temporary.rmdir()
