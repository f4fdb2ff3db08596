"""A training run of the generators: batches by length, checkpoints, and the perplexity on held-out examples."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor
from transformers import PrinterCallback, ProgressCallback, Trainer, TrainingArguments, set_seed

from likewise.context.errors import ContextError
from likewise.context.generator_options import GeneratorOptions
from likewise.context.generators import CONFIG, Generators, batch_of, ngram_perplexity, perplexity
from likewise.context.ngram import Trigram, Unigram
from likewise.context.pieces import TASKS, Cutter, Example
from likewise.context.vocabulary import Vocabulary
from likewise.runs.provenance import machine, versions
from likewise.training.batching import LengthBatchSampler
from likewise.training.folder import RunFolder
from likewise.training.precision import use_bf16
from likewise.training.progress import JsonlLog, OrderlyStop, ProgressBar
from likewise.transformers_output import no_bar


@dataclass(frozen=True)
class GeneratorResult:
    """How a run ended.

    Attributes:
        path: the folder; `Generators.load` reads it if `finished`.
        finished: False after Ctrl-C; `resume=True` goes on.
        steps: updates done.
        perplexity: of the held-out text, by model ("generators", "unigram", "trigram") and task ("all", "centre", ...).
    """

    path: Path
    finished: bool
    steps: int
    perplexity: dict[str, dict[str, float]]


class GeneratorFolder(RunFolder):
    """A run folder that is finished when the generators lie in it."""

    @property
    def is_finished(self) -> bool:
        """Whether finished generators lie here."""
        return (self.path / CONFIG).exists()


@no_bar()  # one bar is enough
def train_generators(
    examples: Sequence[Example],
    out: str | Path,
    options: GeneratorOptions | None = None,
    vocabulary: Vocabulary | None = None,
    *,
    seed: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
) -> GeneratorResult:
    """Train the generators and write them into a folder.

    Args:
        examples: a list, or any sequence that reads them from disk; those held out are drawn by the seed.
        out: the folder.
        options: sizes and training.
        vocabulary: sub-words; by default made from the training examples. A base has its own.
        seed: fixes weights, batches, dropout and what is held out.
        resume: go on from the last checkpoint, to the same weights as a run that was never stopped.
        overwrite: replace what lies in `out`.
        quiet: print nothing.

    Raises:
        ContextError: too few examples, or another run is resumed.
        RunFolderError: `out` holds something that would be lost, or nothing to resume.
        OptionError: this machine has no bfloat16, which is asked for.
    """
    console = Console(quiet=quiet, stderr=True)
    options = options or GeneratorOptions()
    bf16 = use_bf16(options.precision)
    update = options.batch_size * options.accumulation
    training, held_out = split(examples, options.held_out, seed)
    if len(training) < update:
        raise ContextError(
            f"{len(training):,} training examples are left beside {len(held_out):,} held out with their documents: "
            "give more documents, or a smaller held_out"
        )
    folder = GeneratorFolder(Path(out))
    checkpoint = folder.prepare(resume=resume, overwrite=overwrite)
    if vocabulary is None and not options.base:
        vocabulary = Vocabulary.train(
            list(dict.fromkeys(example.centre for example in training)), options.vocabulary, lowercase=options.lowercase
        )
    set_seed(seed)
    generators = Generators.build(options, vocabulary)
    record = {
        "options": options.to_dict(),
        "seed": seed,
        "examples": len(training),
        "text": _fingerprint(held_out),
        "vocabulary": generators.vocabulary.fingerprint,
        "parameters": sum(part.numel() for part in generators.parameters()),
        "precision": "bf16" if bf16 else "fp32",
        "versions": versions(),
        "machine": machine(),
    }
    if checkpoint:
        _check_same(folder, record)
    folder.write_record({**record, "status": "running"})
    trainer = GeneratorTrainer(generators, training, held_out, folder, seed, bf16)
    stop, bar = OrderlyStop(console), ProgressBar(console, "perplexity")
    for callback in (JsonlLog(folder.log, _step(checkpoint)), bar, stop):
        trainer.add_callback(callback)
    started = time.monotonic()
    try:
        with stop:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    finally:
        bar.close()
    steps = trainer.state.global_step
    record.update(steps=steps, seconds=round(time.monotonic() - started, 1))
    if steps < trainer.state.max_steps:
        folder.write_record({**record, "status": "stopped"})
        return GeneratorResult(folder.path, False, steps, {})
    found = compare(generators, training, held_out)
    generators.save(folder.path)
    folder.write_record({**record, "perplexity": found, "status": "finished"})
    shutil.rmtree(folder.checkpoints, ignore_errors=True)
    return GeneratorResult(folder.path, True, steps, found)


def split(examples: Sequence[Example], at_least: int, seed: int) -> tuple[Sequence[Example], list[Example]]:
    """Examples to train on, and those of whole documents drawn by the seed until there are `at_least` of them."""
    documents = np.fromiter((example.document for example in examples), dtype=np.int64, count=len(examples))
    distinct, counts = np.unique(documents, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(distinct))
    n = int(np.searchsorted(np.cumsum(counts[order]), at_least)) + 1
    out = np.isin(documents, distinct[order[:n]])
    return _Rows(examples, np.flatnonzero(~out)), [examples[int(i)] for i in np.flatnonzero(out)]


def compare(
    generators: Generators, training: Sequence[Example], held_out: Sequence[Example]
) -> dict[str, dict[str, float]]:
    """Held-out perplexity of the generators beside n-gram models of the same training sentences."""
    found = perplexity(generators, held_out, generators.options.batch_size)
    return {"generators": found.to_dict(), **ngrams(generators.cutter, training, held_out)}


def ngrams(cutter: Cutter, training: Sequence[Example], held_out: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Held-out perplexity of a unigram and of a trigram model."""
    texts = [piece.ids for piece in sentence_pieces(cutter, training)]
    size = len(cutter.vocabulary)
    return {
        name: ngram_perplexity(model, cutter, held_out).to_dict()
        for name, model in (("unigram", Unigram(texts, size)), ("trigram", Trigram(texts, size)))
    }


def sentence_pieces(cutter: Cutter, examples: Sequence[Example]) -> list[Any]:
    """Each different sentence of the examples as a piece."""
    texts = dict.fromkeys(text for example in examples for text in example.texts)
    return cutter.sentences(list(texts))


class GeneratorTrainer(Trainer):
    """transformers' trainer with batches by length and the perplexity as its evaluation."""

    def __init__(
        self,
        generators: Generators,
        training: Sequence[Example],
        held_out: Sequence[Example],
        folder: RunFolder,
        seed: int,
        bf16: bool,
    ) -> None:
        options = generators.options
        self.generators = generators
        self.training = training
        self.held_out = held_out
        self.seed = seed
        self.lengths = [sum(map(len, row.texts)) for row in training]

        def collate(rows: list[Example]) -> dict[str, dict[str, Tensor]]:
            batch = batch_of(generators.cutter.examples(rows), generators.vocabulary.pad)
            return {task: vars(part) for task, part in batch.items()}

        steps_an_epoch = len(training) // options.batch_size // options.accumulation
        steps = options.max_steps or steps_an_epoch * options.epochs
        super().__init__(
            model=generators,
            args=TrainingArguments(
                output_dir=str(folder.checkpoints),
                per_device_train_batch_size=options.batch_size,
                gradient_accumulation_steps=options.accumulation,
                learning_rate=options.learning_rate,
                adam_beta2=options.beta2,
                max_steps=steps,
                warmup_steps=min(options.warmup_steps, steps // 5),
                lr_scheduler_type=options.schedule,
                weight_decay=options.weight_decay,
                max_grad_norm=options.max_grad_norm,
                bf16=bf16,
                use_cpu=not torch.cuda.is_available() and not torch.backends.mps.is_available(),
                eval_strategy="steps",
                eval_steps=options.eval_steps,
                save_strategy="steps",
                save_steps=options.eval_steps,
                save_total_limit=1,
                logging_steps=min(10, options.eval_steps),
                report_to="none",
                disable_tqdm=True,
                seed=seed,
                data_seed=seed,
                dataloader_pin_memory=torch.cuda.is_available(),
                remove_unused_columns=False,
                ddp_find_unused_parameters=True,
            ),
            train_dataset=training,
            eval_dataset=held_out,
            data_collator=collate,
        )
        self.remove_callback(PrinterCallback)
        self.remove_callback(ProgressCallback)

    def get_train_dataloader(self) -> Any:
        """Batches by length, the same ones for the same seed and epoch."""
        sampler = LengthBatchSampler(self.lengths, self.args.per_device_train_batch_size, self.seed)
        loader: Any = torch.utils.data.DataLoader(
            self.training,  # type: ignore[arg-type]  # a sequence is enough
            batch_sampler=sampler,
            collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory,
        )
        return self.accelerator.prepare(loader)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        # As torch saves it: a base may hold one tensor under two names, which the trainer's own format refuses.
        folder = Path(output_dir or self.args.output_dir or ".")
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.generators.state_dict() if state_dict is None else state_dict, folder / "pytorch_model.bin")
        torch.save(self.args, folder / "training_args.bin")

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The held-out perplexity, over all tasks and of each."""
        found = perplexity(self.generators, self.held_out, self.args.per_device_train_batch_size)
        metrics = {"eval_perplexity": found.of(), **{f"eval_perplexity_{task}": found.of(task) for task in TASKS}}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


class _Rows(Sequence[Example]):
    """Some of the examples, by number."""

    def __init__(self, examples: Sequence[Example], rows: np.ndarray) -> None:
        self.examples, self.rows = examples, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: Any) -> Any:
        return self.examples[int(self.rows[i])]


def _fingerprint(examples: Sequence[Example]) -> str:
    digest = blake2b(digest_size=16)
    for example in examples:
        digest.update("\n".join(example.texts).encode())
    return digest.hexdigest()


def _step(checkpoint: Path | None) -> int:
    return int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0


def _check_same(folder: RunFolder, record: dict[str, Any]) -> None:
    """Raise unless the run in the folder is the one that is resumed."""
    old = folder.read_record()
    then, now = ({**entry.get("options", {}), **entry} for entry in (old, record))
    for name in (*record["options"], "seed", "examples", "text", "vocabulary", "precision"):
        if then.get(name) != now[name]:
            raise ContextError(
                f"--resume: the run in {folder.path} was started with {name} {then.get(name)!r}, not {now[name]!r}; "
                "give what it was started with"
            )
