"""The recipe's options in the words of transformers' trainer."""

from __future__ import annotations

import math
from typing import Any

import torch
from sentence_transformers import SentenceTransformerTrainingArguments
from sentence_transformers.base.training_args import BaseTrainingArguments

from likewise.recipes.options import TrainingOptions
from likewise.training.folder import RunFolder
from likewise.training.selection import Selection


def trainer_arguments(
    options: TrainingOptions,
    folder: RunFolder,
    seed: int,
    selection: Selection,
    steps_an_epoch: int,
    bf16: bool,
    kind: type[BaseTrainingArguments] = SentenceTransformerTrainingArguments,
) -> Any:
    """Arguments of the trainer for a run of `options` with `steps_an_epoch` updates in an epoch.

    `kind` is the class that the trainer wants.
    """
    steps = options.max_steps or steps_an_epoch * options.epochs
    every = min(options.eval_steps or steps, steps)
    return kind(
        output_dir=str(folder.checkpoints),
        per_device_train_batch_size=options.batch_size,
        gradient_accumulation_steps=options.accumulation,
        learning_rate=options.learning_rate,
        # Epochs only bound the order of the data; the steps end the run.
        num_train_epochs=math.ceil(steps / steps_an_epoch),
        max_steps=steps,
        warmup_steps=int(options.warmup_ratio * steps),
        lr_scheduler_type=options.schedule,
        weight_decay=options.weight_decay,
        max_grad_norm=options.max_grad_norm,
        bf16=bf16,
        use_cpu=not torch.cuda.is_available() and not torch.backends.mps.is_available(),
        eval_strategy="steps" if selection.evaluator else "no",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        # With the best one kept apart, this is the best and the last.
        save_total_limit=1,
        load_best_model_at_end=bool(selection.evaluator),
        metric_for_best_model=selection.metric or None,
        greater_is_better=getattr(selection.evaluator, "greater_is_better", True),
        logging_strategy="steps",
        # Also a short run shows a course between its evaluations.
        logging_steps=max(1, min(10, every // 4)),
        report_to="none",
        disable_tqdm=True,
        seed=seed,
        data_seed=seed,
        dataloader_drop_last=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        remove_unused_columns=False,
        # A BERT has a pooler that no sentence embedding uses.
        ddp_find_unused_parameters=True,
    )
