"""The training of the generators: the stage `generators` of a workspace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import get_scheduler
from transformers.trainer_pt_utils import get_parameter_names

from likewise.context.bag_training import fit_bags
from likewise.context.bags import FILE as BAGS
from likewise.context.generators import WEIGHTS, Generators, batch_of, perplexity
from likewise.context.indexing import open_store
from likewise.context.options import GeneratorOptions
from likewise.context.states import open_states
from likewise.context.subwords import Example, Vocabulary, examples_of
from likewise.context.training_loop import Loop
from likewise.context.workspace import ContextError, Stage, Workspace
from likewise.errors import counted
from likewise.runs.job import Job, Resume
from likewise.runs.parts import checksum
from likewise.runs.progress import Progress
from likewise.runs.stopping import orderly_stop
from likewise.training.batching import LengthBatchSampler
from likewise.training.precision import use_bf16


def train_generators(
    work: str | Path,
    options: GeneratorOptions | None = None,
    *,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
) -> Stage:
    """Train the generators of a workspace, unless they are already trained.

    A stopped run that is resumed gives the weights of a run that was never stopped.

    Arguments and errors are those of `likewise.context.train_discriminator`.

    Returns:
        The stage; its record holds the held-out perplexity.
    """
    options, workspace = options or GeneratorOptions(), Workspace(work)
    frozen = options.reads == "states"
    needs = ["index", "states"] if frozen else ["index"]
    with workspace.open("generators", options, needs, resume=resume, overwrite=overwrite) as job:
        if not job.finished and frozen:
            store, states = open_store(workspace.require("index")), open_states(workspace.require("states"))
            facts = fit_bags(job, store, states, options, Progress(quiet))
            job.finish({"fingerprint": checksum(job.result / BAGS), **facts})
        elif not job.finished:
            store = open_store(workspace.require("index"))
            examples = list(examples_of((store[i] for i in range(len(store))), store.left, store.right))
            job.finish(fit_generators(job, examples, options, None, Progress(quiet)))
    return workspace.require("generators")


def fit_generators(
    job: Job,
    examples: Sequence[Example],
    options: GeneratorOptions,
    vocabulary: Vocabulary | None,
    progress: Progress,
) -> dict[str, Any]:
    """Train generators into the result of a job; return the facts for its record.

    Some examples are held out, drawn by the seed. Without a vocabulary, one is made from the others.
    """
    bf16 = use_bf16(options.precision)
    training, held_out = split(examples, options.held_out, options.seed)
    if len(training) < options.batch_size * options.accumulation:
        raise ContextError(
            f"{counted(len(training), 'training example')} left after {len(held_out):,} held out with their documents: "
            "give more documents, or a smaller held_out"
        )
    if vocabulary is None:
        centres = list(dict.fromkeys(example.centre for example in training))
        vocabulary = Vocabulary.train(centres, options.vocabulary, lowercase=options.lowercase)
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        generators = Generators(options, vocabulary)
        torch.manual_seed(options.seed)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        generators.to(device)
        sampler = LengthBatchSampler([sum(map(len, row.texts)) for row in training], options.batch_size, options.seed)
        steps = options.max_steps or len(sampler) // options.accumulation * options.epochs
        optimizer = _optimizer(generators, options)
        schedule = get_scheduler(options.schedule, optimizer, min(options.warmup_steps, steps // 5), steps)

        def loss(rows: list[int]) -> Tensor:
            pieces = generators.cutter.examples([training[row] for row in rows])
            batch = {task: part.to(device) for task, part in batch_of(pieces, generators.vocabulary.pad).items()}
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16):
                return generators.loss(batch)

        def evaluate() -> dict[str, float]:
            found = perplexity(generators, held_out, options.batch_size).to_dict()
            return {f"perplexity_{task}": value for task, value in found.items()}

        loop = Loop(job, generators, optimizer, schedule, loss, evaluate, options.eval_steps, options.max_grad_norm)
        with orderly_stop(progress) as stop:
            loop.resume()
            loop.run(_updates(sampler, options.accumulation), steps, "generators", progress, stop)
    generators.save(job.result)
    return {
        "fingerprint": checksum(job.result / WEIGHTS),
        "perplexity": perplexity(generators, held_out, options.batch_size).to_dict(),
        "steps": steps,
        "cpu_seconds": round(loop.cpu_seconds, 1),
        "examples": len(training),
        "parameters": sum(part.numel() for part in generators.parameters()),
        "precision": "bf16" if bf16 else "fp32",
    }


def _updates(sampler: LengthBatchSampler, accumulation: int) -> Iterator[list[list[int]]]:
    """Yield the batches of each update, epoch after epoch; the last update of an epoch may have fewer."""
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        batches: list[list[int]] = []
        for batch in DataLoader(range(len(sampler.lengths)), batch_sampler=sampler, collate_fn=list):  # type: ignore[arg-type]
            batches.append(batch)
            if len(batches) == accumulation:
                yield batches
                batches = []
        if batches:
            yield batches
        epoch += 1


def _optimizer(generators: Generators, options: GeneratorOptions) -> torch.optim.Optimizer:
    """Return AdamW without decay of biases and layer norms, as transformers' trainer makes it."""
    unlike = [r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]
    decayed = set(get_parameter_names(generators, [torch.nn.LayerNorm], unlike))
    groups: list[dict[str, Any]] = [
        {"params": [part for name, part in generators.named_parameters() if name in decayed]},
        {"params": [part for name, part in generators.named_parameters() if name not in decayed], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups,
        lr=options.learning_rate,
        betas=(0.9, options.beta2),
        eps=1e-8,
        weight_decay=options.weight_decay,
        fused=True,
    )


def split(examples: Sequence[Example], at_least: int, seed: int) -> tuple[list[Example], list[Example]]:
    """Return training examples, and at least `at_least` held-out ones of whole documents drawn by the seed."""
    documents = np.fromiter((example.document for example in examples), dtype=np.int64, count=len(examples))
    distinct, counts = np.unique(documents, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(distinct))
    n = int(np.searchsorted(np.cumsum(counts[order]), at_least)) + 1
    held = np.isin(documents, distinct[order[:n]]).tolist()
    return (
        [example for example, out in zip(examples, held, strict=True) if not out],
        [example for example, out in zip(examples, held, strict=True) if out],
    )
