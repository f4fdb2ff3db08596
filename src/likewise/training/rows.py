"""A run on labelled rows: texts side by side and a label, put into a trainer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.data_collator import CrossEncoderDataCollator
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from sentence_transformers.sentence_transformer.training_args import SentenceTransformerTrainingArguments
from torch import nn
from transformers import set_seed

from likewise.recipes.options import TrainingOptions
from likewise.runs.options import OptionError
from likewise.runs.provenance import machine, versions
from likewise.training.arguments import trainer_arguments
from likewise.training.execute import TrainingResult, execute, resumed_record
from likewise.training.folder import RunFolder, RunFolderError
from likewise.training.selection import Selection
from likewise.training.trainer import LikewiseTrainer, PairTrainer
from likewise.transformers_output import no_bar

LABEL = "label"


@dataclass(frozen=True)
class Built:
    """A model, the loss it is trained with, and what is made of it for the run folder."""

    model: Any
    loss: nn.Module
    export: Callable[[Any], Any]


@dataclass(frozen=True)
class RowsRun:
    """All that a run on labelled rows is made of.

    Attributes:
        name, preset, base, seed: for the record; the seed fixes all chance.
        options: how it is optimised.
        dataset: a Hugging Face dataset whose columns are the texts in the order that the loss wants them in, then
            'label' where there is one.
        corpus: the record of the data: 'sources', 'sentences' (how many rows), 'unit' (what they are), 'sha256'.
        selection: what picks the checkpoint, and which rows are left for training.
        build: makes the model and its loss; called once the record is written and chance is fixed.
        at_end: see `likewise.training.execute.execute`.
        facts: further entries of the record.
    """

    name: str
    preset: str
    base: str
    seed: int
    options: TrainingOptions
    dataset: Any
    corpus: dict[str, Any]
    selection: Selection
    build: Callable[[], Built]
    bf16: bool
    at_end: Callable[[Any], dict[str, Any]] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @no_bar()  # one bar is enough
    def __call__(
        self, folder: RunFolder, console: Console, *, resume: bool, overwrite: bool, keep_checkpoints: bool
    ) -> TrainingResult:
        """Train, in a run folder that is touched only when all else has been checked.

        Raises:
            OptionError: the rows do not fill one update, or the base lies where the run is to be.
            RunFolderError: the folder holds what would be lost, nothing to resume, or another run.
        """
        options, selection = self.options, self.selection
        dataset = self.dataset if selection.rows is None else self.dataset.select(selection.rows)
        steps_an_epoch = len(dataset) // options.batch_size // options.accumulation
        if steps_an_epoch == 0:
            raise OptionError(
                f"{len(dataset):,} training rows do not fill one update of {options.batch_size} x "
                f"{options.accumulation}: give more rows, or a smaller batch_size or accumulation"
            )
        source = Path(self.base)
        if source.exists() and folder.path.resolve() in (source.resolve(), *source.resolve().parents):
            raise OptionError(
                f"the base {self.base} lies in the run folder {folder.path}, which replaces it: choose another --out"
            )
        checkpoint = folder.prepare(resume=resume, overwrite=overwrite)
        record = {
            "recipe": self.name,
            "preset": self.preset,
            "options": options.to_dict(),
            "base": self.base,
            "base_run": _made_by(self.base),
            "seed": self.seed,
            "corpus": self.corpus,
            "selection": selection.description,
            "precision": "bf16" if self.bf16 else "fp32",
            **self.facts,
            "versions": versions(),
            "machine": machine(),
            "status": "running",
        }
        if checkpoint:
            record = resumed_record(folder, record)
        else:
            folder.write_record(record)
        set_seed(self.seed)  # before the model is built: its classifier starts at random
        built = self.build()
        pairs = isinstance(built.model, CrossEncoder)
        kind: Any = CrossEncoderTrainingArguments if pairs else SentenceTransformerTrainingArguments
        trainer = (PairTrainer if pairs else LikewiseTrainer)(
            model=built.model,
            args=trainer_arguments(options, folder, self.seed, selection, steps_an_epoch, self.bf16, kind),
            train_dataset=dataset,
            loss=built.loss,
            evaluator=selection.evaluator,
            data_collator=_collator(built.model, options.max_length),
            lengths=_words(dataset) if options.length_batches else np.zeros(len(dataset)),
            by_length=options.length_batches,
            sam_rho=options.sam_rho,
            sam_every=options.sam_every,
        )
        return execute(
            trainer,
            selection,
            folder,
            console,
            record,
            checkpoint=checkpoint,
            keep_checkpoints=keep_checkpoints,
            export=built.export,
            at_end=self.at_end,
        )


def _collator(model: Any, max_length: int) -> Any:
    if isinstance(model, CrossEncoder):
        return CrossEncoderDataCollator(preprocess_fn=model.preprocess, valid_label_columns=[LABEL])
    longest = model.max_seq_length
    return SentenceTransformerDataCollator(
        preprocess_fn=model.preprocess,
        valid_label_columns=[LABEL],
        # The prompt that the model puts before every text, where it has one.
        prompts=model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None,
        max_length=min(max_length, longest or max_length) if max_length else None,
    )


def _words(dataset: Any) -> np.ndarray:
    """Words of each row's texts together, (rows,)."""
    total = np.zeros(len(dataset), dtype=np.int32)
    for column in dataset.column_names:
        if column != LABEL:
            total += np.fromiter((len(text.split()) for text in dataset[column]), dtype=np.int32, count=len(dataset))
    return total


def hold_out(groups: Sequence[Any], wanted: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows held out, both in order.

    Args:
        groups: of each row; rows of one group (those with the same first sentence) stay together.
        wanted: rows to hold out; a tenth of all at most, one group more at most.
        seed: fixes the choice.
    """
    places: dict[Any, list[int]] = {}
    for row, group in enumerate(groups):
        places.setdefault(group, []).append(row)
    members = list(places.values())
    wanted = min(wanted, len(groups) // 10)
    held: list[int] = []
    for number in np.random.default_rng([seed, 1]).permutation(len(members)):
        if len(held) >= wanted:
            break
        held += members[number]
    mask = np.zeros(len(groups), dtype=bool)
    mask[held] = True
    return np.flatnonzero(~mask), np.flatnonzero(mask)


def _made_by(base: str) -> dict[str, Any] | None:
    """How the base was made, where it is a run folder of likewise."""
    try:
        made = RunFolder(Path(base)).read_record()
    except (OSError, ValueError, RunFolderError):
        return None
    if not made:
        return None
    kept = ("recipe", "preset", "base", "base_run", "seed", "steps", "best")
    return {key: made.get(key) for key in kept} | {"corpus": {"sha256": made.get("corpus", {}).get("sha256")}}
