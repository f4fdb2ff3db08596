"""A training run, from files to a run folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from transformers import set_seed

from likewise.corpus import CorpusOptions, PreparedCorpus, prepare
from likewise.recipes import OptionError, Recipe, TrainingOptions, find_recipe
from likewise.runs.provenance import machine, versions
from likewise.training.arguments import trainer_arguments
from likewise.training.execute import TrainingResult, execute, resumed_record
from likewise.training.folder import RunFolder
from likewise.training.precision import use_bf16
from likewise.training.progress import counting_bar, reading_bar
from likewise.training.selection import Selection, choose_selection
from likewise.training.trainer import LikewiseTrainer
from likewise.transformers_output import no_bar


@no_bar()  # one bar is enough
def train(
    recipe: str,
    corpus: str | os.PathLike[str] | list[str],
    base: str,
    out: str | os.PathLike[str],
    *,
    preset: str | None = None,
    seed: int = 1,
    data: str | os.PathLike[str] | None = None,
    corpus_options: CorpusOptions | None = None,
    resume: bool = False,
    overwrite: bool = False,
    keep_checkpoints: bool = False,
    quiet: bool = False,
    **options: Any,
) -> TrainingResult:
    """Train a sentence encoder on plain text.

    Args:
        recipe: a name of `likewise.RECIPES`.
        corpus: a file, a glob, `bundled:wiki-sample`, or a list of these (see `likewise.corpus.prepare`).
        base: a Hugging Face name, a folder, or `bundled:minilm`.
        out: the run folder, which becomes the model.
        preset: a named set of options of the recipe; its first by default.
        seed: fixes batches, masks, dropout and the training head.
        data: a folder in SentEval's layout with STS-B dev, which then selects the checkpoint.
        corpus_options: how the corpus is read.
        resume: go on from the last checkpoint of `out`, to the same weights as a run that was never stopped.
        overwrite: replace the run that lies in `out`.
        keep_checkpoints: keep the trainer's checkpoints after the run.
        quiet: print nothing.
        options: options of the recipe, over the preset's; a name it does not know is an error.

    Returns:
        How it ended. The model in `out` is the one that was evaluated: without training head, best checkpoint.

    Raises:
        OptionError, RunFolderError, CorpusError, DataError, LoadError: each a ValueError whose message names
            the cure; all of them come before training starts.
    """
    console = Console(quiet=quiet, stderr=True)
    method = find_recipe(recipe)
    chosen = method.options(preset, **options)
    bf16 = use_bf16(chosen.precision)
    folder = RunFolder(Path(out))
    checkpoint = folder.prepare(resume=resume, overwrite=overwrite)
    if method.check_base:
        method.check_base(base, chosen)

    with reading_bar(console) as progress:
        at_least = chosen.batch_size * chosen.accumulation
        sentences = prepare(corpus, corpus_options, at_least=at_least, progress=progress)
    console.print(str(sentences.report), markup=False, highlight=False)
    selection = choose_selection(sentences.dataset, chosen, seed, data)
    console.print(f"checkpoint selected by: {selection.description}", markup=False, highlight=False)

    record = {
        "recipe": method.name,
        "preset": preset or next(iter(method.presets)),
        "options": chosen.to_dict(),
        "base": base,
        "seed": seed,
        "corpus": {
            "sources": list(sentences.sources),
            "sentences": len(sentences),
            "sha256": sentences.sha256,
            "report": sentences.report.to_dict(),
        },
        "selection": selection.description,
        "precision": "bf16" if bf16 else "fp32",
        "versions": versions(),
        "machine": machine(),
        "status": "running",
    }
    if checkpoint:
        record = resumed_record(folder, record)
    else:
        folder.write_record(record)
    set_seed(seed)  # before the encoder is built: its training head starts at random
    trainer = _Run(method, chosen, folder, console, seed).trainer(base, sentences, selection, bf16)
    return execute(
        trainer, selection, folder, console, record, checkpoint=checkpoint, keep_checkpoints=keep_checkpoints
    )


@dataclass(frozen=True)
class _Run:
    """One run, when all that can be wrong with its input has been checked."""

    method: Recipe
    options: TrainingOptions
    folder: RunFolder
    console: Console
    seed: int

    def trainer(self, base: str, corpus: PreparedCorpus, selection: Selection, bf16: bool) -> LikewiseTrainer:
        """The encoder, its views and its loss, put into a trainer."""
        dataset = corpus.dataset if selection.rows is None else corpus.dataset.select(selection.rows)
        steps_an_epoch = len(dataset) // self.options.batch_size // self.options.accumulation
        if steps_an_epoch == 0:
            raise OptionError(
                f"{len(dataset):,} training sentences do not fill one update of {self.options.batch_size} x "
                f"{self.options.accumulation}: give more text, or a smaller batch_size or accumulation"
            )
        if self.method.add_columns:
            taken = self.options.max_steps * self.options.batch_size * self.options.accumulation
            total = min(taken or len(dataset), len(dataset))
            with counting_bar(self.console, "preparing the sentences", total) as progress:
                dataset = self.method.add_columns(corpus, dataset, self.options, self.seed, progress)
            # The new rows may be fewer: those that the steps will take.
            steps_an_epoch = len(dataset) // self.options.batch_size // self.options.accumulation
        encoder = self.method.encoder(base, self.options, dataset["sentence"])
        for module in encoder:
            if report := getattr(module, "report", None):
                self.console.print(report, markup=False, highlight=False)
        args = trainer_arguments(self.options, self.folder, self.seed, selection, steps_an_epoch, bf16)
        build = self.method.build_optimizer
        return LikewiseTrainer(
            model=encoder,
            args=args,
            optimizers=build(encoder, self.options, args.max_steps) if build else (None, None),
            train_dataset=dataset,
            loss=self.method.build_loss(encoder, self.options),
            evaluator=selection.evaluator,
            data_collator=self.method.build_collator(encoder, self.options, self.seed),
            lengths=dataset.with_format("numpy")["words"][:],
            by_length=self.options.length_batches,
            sam_rho=self.options.sam_rho,
            sam_every=self.options.sam_every,
        )
