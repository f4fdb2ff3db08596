"""Fine-tuning of any encoder on labeled rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from sentence_transformers.sentence_transformer.modules import Normalize, WordWeights
from torch import nn
from transformers import set_seed

from likewise.corpus.tables import LabelledDataError
from likewise.encoder.build import for_training
from likewise.encoder.location import LoadError, Role, check_loadable
from likewise.encoder.modules import with_modules, without_training_head
from likewise.encoder.settings import ModelSettings, add_adapter, train_adapters
from likewise.inference.load_model import base_name, load
from likewise.inference.vectors import dimension
from likewise.runs.job import Resume
from likewise.runs.options import OptionError, checked
from likewise.training.objectives import LABEL, FinetuneOptions, LabelledRows, Objective, find_objective
from likewise.training.selection import Selection, choose_selection
from likewise.training.training_job import Training, check_updates, started
from likewise.training.training_result import TrainingResult

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@checked
def finetune(
    objective: str,
    rows: Files | None = None,
    *,
    base: SentenceTransformer | str | os.PathLike[str],
    out: str | os.PathLike[str],
    dev: Files | None = None,
    data: str | os.PathLike[str] | None = None,
    preset: str | FinetuneOptions | None = None,
    seed: int = 1,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
    **options: object,
) -> TrainingResult:
    """Fine-tune an encoder on labeled rows.

    Args:
        objective: Name of the objective: 'nli', 'sts' or 'triplets'.
        rows: Path to a file or a folder, or several paths; the readers in `likewise.training.objectives` describe the
            formats. The default, for 'sts' only, is STS-B train of the data folder.
        base: Path or name of the model to train further: a folder (of likewise, sentence-transformers or transformers),
            a hub name, or `bundled:NAME`. Its modules stay the same.
        out: Path to save the model to: the base's modules with new weights, without the classifier.
        dev: Paths to rows that select the checkpoint, instead of STS-B dev or held-out rows.
        data: Path to SentEval's data.
        preset: Name of a preset, by default the first one, or your own options, such as
            `likewise.training.STSOptions(epochs=2)`.
        seed: Random seed of batches, dropout, the classifier's first weights, and the held-out rows.
        resume, overwrite, quiet: See `likewise.train`.
        options: Options of the objective, which override the preset.

    Returns:
        The path of the model and its record.

    Raises:
        LikewiseError: If the input is invalid, or training diverges; the message names the cure.
        Stopped: If the training is interrupted; the same call resumes it.

    Example:
        >>> import likewise
        >>> from pathlib import Path
        >>> rows = ["sentence1,sentence2,score", "It rains.,Rain falls.,5", "It rains.,He sold his car.,0"]
        >>> _ = Path("rated.csv").write_text("\\n".join(rows))
        >>> settings = {"batch_size": 2, "max_steps": 1, "select_by": "last", "quiet": True}
        >>> result = likewise.finetune("sts", "rated.csv", base="bundled:minilm", out="runs/rated", **settings)
        >>> result.steps
        1
    """
    task = find_objective(objective)
    chosen = task.options(preset, **options)
    progress = started(out, chosen, seed, quiet)
    check_loadable(base := base_name(base))
    routes = "" if task.sides else "its rows have no sides; `finetune triplets` trains both routes"
    ModelSettings.named(base).check(base, f"finetune {task.name}", routes=routes)
    with progress.bar("reading the rows"):
        read = task.read(_paths(rows), data, chosen)
        dev_rows = task.read(_paths(dev), data, chosen) if dev else None
    progress.tell(read)
    selection = _selection(task, chosen, seed, data, read, dev_rows)
    progress.tell(f"checkpoint: {selection.description}")
    dataset = selection.training_rows(read.dataset)
    check_updates(len(dataset), chosen, read.unit)
    encoder, export = to_continue(base)
    set_seed(seed)  # a classifier and an adapter start at random
    if chosen.lora:
        add_adapter(encoder, chosen.lora)
    if not any(parameter.requires_grad for parameter in encoder.parameters()):
        raise LoadError(f"--base {base} has no trainable weights: all of them are frozen. Give another base")
    if extra := task.training_only(dimension(encoder)):
        encoder = with_modules(encoder, [*encoder, *extra])
    named = task.preset_name(preset)
    arguments = {"base": base, "out": out, "seed": seed, "data": data, "options": chosen}
    arguments |= {} if preset is None or named == "own" else {"preset": named}
    training = Training(
        job=f"finetune {task.name}",
        name=f"finetune-{task.name}",
        preset=named,
        base=base,
        seed=seed,
        options=chosen,
        dataset=dataset,
        corpus=read.record() | ({"dev": dev_rows.record()} if dev_rows else {}),
        selection=selection,
        model=encoder,
        loss=task.build_loss(encoder, chosen),
        collator=collate_rows(encoder, chosen.max_length, dict(zip(dataset.column_names, task.sides, strict=False))),
        export=export,
        config={"objective": task.name, "rows": rows, "dev": dev, **arguments},
    )
    return training.run(out, progress, resume=resume, overwrite=overwrite)


def to_continue(base: str) -> tuple[SentenceTransformer, Callable[[SentenceTransformer], SentenceTransformer]]:
    """Return a fine-tuned encoder to train further, and a function from the trained one to the model to save.

    The architecture of the encoder does not change. Its vectors are trained without the final normalization, which the
    saved model has again, because a classifier or a margin of distances has little effect on vectors of length 1. Fixed
    weights of tokens, such as the weights of a mask prompt, are preserved.
    """
    model = load(base, precision="fp32")
    modules: list[nn.Module] = list(model)
    scaled = len(modules) > 1 and isinstance(modules[-1], Normalize)
    for module in modules:
        if isinstance(module, WordWeights):
            module.requires_grad_(False)
    train_adapters(model)

    def export(trained: SentenceTransformer) -> SentenceTransformer:
        bare = without_training_head(trained)
        return with_modules(bare, [*bare, Normalize()]).eval() if scaled else bare

    return for_training(with_modules(model, modules[:-1] if scaled else modules)), export


def collate_rows(model: Any, max_length: int, sides: Mapping[str, Role] = {}) -> SentenceTransformerDataCollator:
    """Return the collator of labeled rows for an encoder.

    Args:
        max_length: Maximum number of tokens of a text; 0 uses the encoder's limit.
        sides: Role of each column for an encoder that encodes queries and documents differently. Other encoders put
            their default prompt before every text.
    """
    longest, settings = model.max_seq_length, ModelSettings.of(model)
    roles = sides if settings.has_sides else {}
    routes: Any = {column: settings.task(role) for column, role in roles.items() if settings.routes}
    return SentenceTransformerDataCollator(
        preprocess_fn=model.preprocess,
        valid_label_columns=[LABEL],
        prompts={column: settings.prompt(role) for column, role in roles.items()} or settings.prompt() or None,
        router_mapping=routes,
        max_length=min(max_length, longest or max_length) if max_length else None,
    )


def _selection(
    task: Objective,
    options: FinetuneOptions,
    seed: int,
    data: str | os.PathLike[str] | None,
    read: LabelledRows,
    dev: LabelledRows | None,
) -> Selection:
    """Return the selection of the checkpoint: by the rows of a dev file if there are any."""
    if dev is None:
        first = read.dataset[read.dataset.column_names[0]]  # rows with the same first sentence stay together
        return choose_selection(read.dataset, options, seed, data, first, lambda rows: task.held_out(rows, options))
    if options.select_by in ("sts-b-dev", "last"):
        raise OptionError(f"a dev file and select_by={options.select_by} contradict each other: omit one of them")
    named = ", ".join(dev.sources)
    if LABEL in dev.dataset.column_names and len(set(dev.dataset[LABEL])) < 2:
        raise LabelledDataError(f"{named}: all labels are the same, so that this file cannot select a checkpoint")
    evaluator = task.held_out(dev.dataset, options)
    return Selection(f"{evaluator.description} ({named})", evaluator, fingerprint=dev.sha256)


def _paths(files: Files | None) -> list[Path]:
    named = [files] if isinstance(files, (str, os.PathLike)) else list(files or ())
    paths = [Path(name).expanduser() for name in named]
    for path in paths:
        if not path.exists():
            raise LabelledDataError(f"{path}: no such file or folder: check the path")
    return paths
