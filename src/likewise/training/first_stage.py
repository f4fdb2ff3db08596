"""The first stage of a recipe that needs another one's model as its base: `sncse` after mask distillation.

The stage's model lies in the folder of the prepared corpus, so that every seed and every later run of the same base
and corpus finds it. It is a training like any other: shown, locked, and resumed after a stop.
"""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from filelock import FileLock

from likewise.corpus import PreparedCorpus
from likewise.evaluation.checkpoint import CheckpointEvaluator, sentences_evaluator
from likewise.inference.loading import load
from likewise.recipes import Recipe, TrainingOptions
from likewise.runs import processes
from likewise.runs.job import read_record
from likewise.runs.progress import Progress
from likewise.training.checkpoints import base_fingerprint
from likewise.transformers_output import no_bar

_SENTENCES = 500
"""On which the first stage's need is measured where no rated pairs are found."""


def base_to_train(
    method: Recipe,
    base: str,
    options: TrainingOptions,
    corpus: PreparedCorpus,
    evaluator: CheckpointEvaluator | None,
    progress: Progress,
    train_first: Callable[..., Any],
) -> str:
    """Return the base that the encoder is built from: the first stage's model where the recipe needs it.

    It does if the encoder that it builds from the base is behind the base's own vector by more than the noise.

    Args:
        evaluator: what measures both; held-out style copies of the corpus's own sentences where there is none.
        train_first: from the stage's recipe, base, folder and options to its result.
    """
    stage = method.first
    wanted = stage.wanted(base, options) if stage else "never"
    if stage is None or wanted == "never":
        return base
    settings = stage.options(options)
    facts = [stage.recipe.options(**settings).to_dict(), base_fingerprint(base)]
    facts += [processes.count()] if processes.count() > 1 else []
    key = json.dumps(facts, sort_keys=True)
    name = f"{stage.recipe.name}-{hashlib.blake2b(key.encode(), digest_size=6).hexdigest()}"
    folder = corpus.path.parent / name

    def needed() -> bool:
        if read_record(folder):
            return True
        found = wanted == "always" or _behind(method, base, options, corpus, evaluator, progress)
        if found:
            progress.tell(f"first stage: {stage.recipe.name} (kept in {folder})")
        return found

    if not processes.by_first(needed):
        return base
    # Another run may be at it: its model will do.
    with FileLock(f"{folder}.lock") if processes.is_first() else nullcontext():
        train_first(stage.recipe, base=base, out=folder, **settings)
    return os.fspath(folder)


@no_bar()
def _behind(
    method: Recipe,
    base: str,
    options: TrainingOptions,
    corpus: PreparedCorpus,
    evaluator: CheckpointEvaluator | None,
    progress: Progress,
) -> bool:
    evaluator = evaluator or sentences_evaluator(corpus.dataset[: 2 * _SENTENCES]["sentence"], limit=_SENTENCES)
    metric = evaluator.primary_metric
    with progress.bar("first stage: is it needed?"):
        own, own_items = evaluator(load(base))[metric], evaluator.items
        built = evaluator(method.build_encoder(base, options).eval())[metric]
    noise = evaluator.noise(own_items, evaluator.items) or 0.0
    behind = (own - built) * (1 if evaluator.greater_is_better else -1) > noise
    progress.tell(f"{metric}: {own:.4g} for the base's own vector, {built:.4g} for what {method.name} makes of it")
    return behind
