"""Train any encoder further on labelled rows."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from likewise.evaluation.checkpoint import sts_b_dev_evaluator
from likewise.evaluation.task import DataError
from likewise.inference.encoding import dimension
from likewise.runs.options import OptionError
from likewise.supervised.objective import FinetuneOptions, Objective
from likewise.supervised.objectives import find_objective
from likewise.supervised.rows import LabelledDataError, LabelledRows
from likewise.training.continued import Continued
from likewise.training.execute import TrainingResult
from likewise.training.folder import RunFolder
from likewise.training.precision import use_bf16
from likewise.training.rows import Built, RowsRun, hold_out
from likewise.training.selection import Selection

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def finetune(
    objective: str,
    base: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    train: Files | None = None,
    dev: Files | None = None,
    data: str | os.PathLike[str] | None = None,
    preset: str | None = None,
    seed: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    keep_checkpoints: bool = False,
    quiet: bool = False,
    **options: Any,
) -> TrainingResult:
    """Train an encoder further on labelled rows.

    Args:
        objective: 'nli', 'sts' or 'triplets'.
        base: any model: a folder (of likewise, sentence-transformers or transformers), a name of the hub, or
            `bundled:minilm`. Its modules stay what they are.
        out: the run folder, which becomes the model: the base's modules with other weights, and no classifier.
        train: a file, a folder or several; what may be in them is said by the objective's reader
            (`likewise.supervised.nli`, `.sts`, `.triplets`). None: STS-B train of the data folder, for sts.
        dev: such files that pick the checkpoint, in place of STS-B dev or of held-out rows.
        data: a folder in SentEval's layout.
        preset: a named set of options; the first by default.
        seed: fixes batches, dropout, the classifier's first weights, and the rows held out.
        resume: go on from the last checkpoint of `out`, to the same weights as a run that was never stopped.
        overwrite: replace the run that lies in `out`.
        keep_checkpoints: keep the trainer's checkpoints after the run.
        quiet: print nothing.
        options: options of the objective, over the preset's.

    Raises:
        OptionError, RunFolderError, LabelledDataError, DataError, LoadError: each a ValueError whose message names the
            cure; all come before training starts.
    """
    console = Console(quiet=quiet, stderr=True)
    task = find_objective(objective)
    chosen = task.options(preset, **options)
    bf16 = use_bf16(chosen.precision)
    base = os.fspath(base)
    with console.status("reading the rows"):
        rows = task.read(_paths(train), data, chosen)
        dev_rows = task.read(_paths(dev), data, chosen) if dev else None
    console.print(str(rows), markup=False, highlight=False, soft_wrap=True)
    selection = choose_rows(task, rows, dev_rows, chosen, seed, data)
    console.print(f"checkpoint selected by: {selection.description}", markup=False, highlight=False)
    continued = Continued.load(base)  # before the run folder is touched: it may not load

    def build() -> Built:
        encoder = continued.with_training_only(task.training_only(dimension(continued.encoder)))
        return Built(encoder, task.build_loss(encoder, chosen), continued.export)

    run = RowsRun(
        name=f"finetune-{task.name}",
        preset=preset or next(iter(task.presets)),
        base=base,
        seed=seed,
        options=chosen,
        dataset=rows.dataset,
        corpus=rows.record() | ({"dev": dev_rows.record()} if dev_rows else {}),
        selection=selection,
        build=build,
        bf16=bf16,
    )
    return run(RunFolder(Path(out)), console, resume=resume, overwrite=overwrite, keep_checkpoints=keep_checkpoints)


def choose_rows(
    task: Objective,
    rows: LabelledRows,
    dev: LabelledRows | None,
    options: FinetuneOptions,
    seed: int,
    data: str | os.PathLike[str] | None,
) -> Selection:
    """What picks the checkpoint: the dev rows where there are any, else STS-B dev where found, else held-out rows.

    Raises:
        DataError: STS-B dev is asked for and not found, or it is malformed; or `data` is given and holds none.
        OptionError: dev rows are given, and another selection is asked for.
    """
    if dev and options.select_by in ("sts-b-dev", "last"):
        raise OptionError(f"a dev file and select_by={options.select_by} contradict each other: drop one of them")
    if options.select_by == "last":
        return Selection("last", None, None, "the last checkpoint is kept")
    if dev:
        evaluator = task.held_out(dev, options)
        return Selection("dev", evaluator, None, f"{evaluator.description} ({', '.join(dev.sources)})")
    if task.sts_dev and options.select_by in ("auto", "sts-b-dev"):
        try:
            evaluator = sts_b_dev_evaluator(data)
            return Selection("sts-b-dev", evaluator, None, evaluator.description)
        except DataError:
            if options.select_by == "sts-b-dev" or data is not None:
                raise
    kept, held = hold_out(rows.dataset[rows.texts[0]], options.held_out, seed)
    if len(held) < 2:
        return Selection("last", None, None, "too few rows to hold any out; the last checkpoint is kept")
    evaluator = task.held_out(dataclasses.replace(rows, dataset=rows.dataset.select(held)), options)
    return Selection("held-out", evaluator, kept, evaluator.description)


def _paths(files: Files | None) -> list[Path]:
    if files is None:
        return []
    named = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    paths = [Path(name).expanduser() for name in named]
    for path in paths:
        if not path.exists():
            raise LabelledDataError(f"{path}: there is no such file or folder")
    return paths
