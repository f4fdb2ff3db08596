"""Training of a recipe on plain text, and what is made of its base first and kept beside the corpus."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from hashlib import blake2b
from typing import Any, cast

import numpy as np
from filelock import FileLock
from sentence_transformers import SentenceTransformer
from transformers import set_seed

from likewise.corpus import CorpusOptions, PreparedCorpus, prepare
from likewise.corpus.given import GivenTexts, given_texts
from likewise.encoder.opening import is_sentence_encoder
from likewise.evaluation.checkpoint import CheckpointEvaluator, sentences_evaluator
from likewise.inference.engines.graph import fingerprint
from likewise.inference.files import encode_file
from likewise.inference.loading import base_name, load
from likewise.recipes import Recipe, TrainingOptions, find_recipe
from likewise.runs import processes
from likewise.runs.arguments import checked
from likewise.runs.job import Resume, read_record
from likewise.runs.parts import Parts
from likewise.runs.progress import Progress
from likewise.runs.whole_files import written_whole
from likewise.training.checkpoints import base_fingerprint, made_by
from likewise.training.result import TrainingResult
from likewise.training.running import Training, check_updates, started
from likewise.training.selection import choose_selection
from likewise.transformers_output import no_bar

_AT_A_TIME = 10_000  # sentences whose vectors are in memory
_MEASURED = 500
"""Sentences on which the need of a first stage is measured where no rated pairs are found."""


@checked
def train(
    recipe: str | Recipe,
    corpus: GivenTexts,
    *,
    base: SentenceTransformer | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str],
    preset: str | None = None,
    seed: int = 1,
    data: str | os.PathLike[str] | None = None,
    corpus_options: CorpusOptions | None = None,
    resume: Resume = "auto",
    overwrite: bool = False,
    keep_checkpoints: bool = False,
    quiet: bool = False,
    **options: Any,
) -> TrainingResult:
    """Train a sentence encoder on plain text.

    torchrun and `accelerate launch` start it in several processes, which train one model: a batch is then `batch_size`
    sentences of each, and all of them are each other's negatives.

    All input is checked before `out` is touched. A training that was stopped or killed resumes, by the same call, to
    the same weights as one that was never stopped; where it is finished already, its result is returned.

    Args:
        recipe: a name of `likewise.RECIPES` or of an installed package's recipe, or a `Recipe`.
        corpus: a file, a folder, a glob, `bundled:wiki-sample`, or a list of these (see `likewise.corpus.prepare`); in
            Python also texts: a list, a column, any iterable. Rows are mappings or a DataFrame.
        base: a Hugging Face name, a folder, `bundled:NAME`, or an encoder that is loaded; the recipe's own by default.
        out: the folder that becomes the model.
        preset: a named set of options of the recipe; its first by default.
        seed: fixes batches, masks, dropout and the training head.
        data: the folder of SentEval's data; STS-B dev in it selects the checkpoint.
        corpus_options: how the corpus is read.
        resume: True insists on a stopped training.
        overwrite: replace the model in `out` once the new one is whole, and throw a stopped training away.
        keep_checkpoints: keep the trainer's last checkpoints in `out`.
        quiet: print nothing.
        options: options of the recipe, over the preset's; a name it does not know is an error.

    Returns:
        The model that was evaluated, without training head, from the best checkpoint, and its record.

    Raises:
        LikewiseError: the input is wrong or training diverged; the message names the cure.
        Stopped: it was interrupted; the same call resumes it.
    """
    method = find_recipe(recipe)
    chosen = method.options(preset, **options)
    base = base_name(method.default_base if base is None else base)
    progress = started(out, chosen, seed, quiet)
    method.check_base(base, chosen)
    given = given_texts(corpus, corpus_options)
    at_least = chosen.batch_size * chosen.accumulation * processes.count()
    with processes.in_turn():
        sentences = prepare(given.files, given.options, at_least=at_least, progress=progress)
    progress.tell(sentences.report)
    selection = choose_selection(sentences.dataset, chosen, seed, data)
    progress.tell(f"checkpoint selected by: {selection.description}")
    dataset = selection.training_rows(sentences.dataset)
    check_updates(len(dataset), chosen)
    train_stage = partial(train, corpus=cast(Any, given), data=data, quiet=quiet)
    start = _base_to_train(method, base, chosen, sentences, selection.evaluator, progress, train_stage)
    with processes.in_turn(), no_bar():
        set_seed(seed)  # the training head starts at random
        encoder = None if method.encoder_reads_corpus else method.build_encoder(start, chosen)
        dataset = method.add_columns(sentences, dataset, chosen, seed, progress)
        if method.teacher_length:
            dataset = with_teacher(sentences, dataset, start, method.teacher_length(chosen), progress)
        check_updates(len(dataset), chosen)
        if encoder is None:
            set_seed(seed)
            encoder = method.build_encoder(start, chosen, dataset["sentence"])
    for module in encoder:
        if report := getattr(module, "report", None):
            progress.tell(report)
    read = given.options if given.in_memory else corpus_options
    arguments = {"base": base, "out": out, "preset": preset, "seed": seed, "data": data, "options": chosen}
    training = Training(
        job=f"train {method.name}",
        name=method.name,
        preset=preset or next(iter(method.presets)),
        base=base,
        seed=seed,
        options=chosen,
        dataset=dataset,
        corpus=sentences.record(),
        selection=selection,
        model=encoder,
        loss=method.build_loss(encoder, chosen),
        collator=method.build_collator(encoder, chosen, seed),
        optimizers=lambda steps: method.build_optimizer(encoder, chosen, steps),
        config={"recipe": method.name, "corpus": given.files, "corpus_options": read, **arguments},
        as_shipped=not method.encoder_reads_corpus
        and getattr(chosen, "pooling", "") != "own"
        and is_sentence_encoder(base),
        facts={"first_stage": made_by(start)} if start != base else {},
    )
    return training.run(out, progress, resume=resume, overwrite=overwrite, keep_checkpoints=keep_checkpoints)


def _base_to_train(
    method: Recipe,
    base: str,
    options: TrainingOptions,
    corpus: PreparedCorpus,
    evaluator: CheckpointEvaluator | None,
    progress: Progress,
    train_stage: Callable[..., Any],
) -> str:
    """Return the base that the encoder is built from: the first stage's model where the recipe needs it.

    It does if the encoder that it builds from the base is behind the base's own vector by more than the noise: `sncse`
    is trained after mask distillation. The stage's model lies in the folder of the prepared corpus, so that every seed
    and every later run of the same base and corpus finds it. It is a training like any other: shown, locked, and
    resumed after a stop.

    Args:
        evaluator: what measures both; held-out style copies of the corpus's own sentences where there is none.
    """
    stage = method.first
    wanted = stage.wanted(base, options) if stage else "never"
    if stage is None or wanted == "never":
        return base
    settings = stage.options(options)
    facts = [stage.recipe.options(**settings).to_dict(), base_fingerprint(base)]
    facts += [processes.count()] if processes.count() > 1 else []
    key = json.dumps(facts, sort_keys=True)
    folder = corpus.path.parent / f"{stage.recipe.name}-{blake2b(key.encode(), digest_size=6).hexdigest()}"

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
        train_stage(stage.recipe, base=base, out=folder, **settings)
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
    evaluator = evaluator or sentences_evaluator(corpus.dataset[: 2 * _MEASURED]["sentence"], limit=_MEASURED)
    metric = evaluator.primary_metric
    with progress.bar("first stage: is it needed?"):
        own, own_items = evaluator(load(base))[metric], evaluator.items
        built = evaluator(method.build_encoder(base, options).eval())[metric]
    noise = evaluator.noise(own_items, evaluator.items) or 0.0
    behind = evaluator.gain(built, own) > noise
    progress.tell(f"{metric}: {own:.4g} for the base's own vector, {built:.4g} for what {method.name} makes of it")
    return behind


def with_teacher(corpus: PreparedCorpus, dataset: Any, base: str, length: int, progress: Progress) -> Any:
    """Return the dataset with the column `teacher`: a base's vector of each sentence, less their mean, as bytes.

    The vectors lie in the folder of the corpus, where every seed and every later run finds them. Encoding is a job like
    `likewise encode`: shown, resumed after a stop, and in bfloat16 or int8 where those are fast and near enough (a
    cosine of 0.998 to the exact vector, where a student comes to 0.88).

    Args:
        dataset: rows with 'sentence'.
        base: what `likewise.load` takes.
        length: the most tokens that the base reads of a sentence; 0: as many as it does by itself.

    Returns:
        The rows; `teacher` holds E float16 numbers (`numpy.frombuffer`).
    """
    model = load(base, precision="auto")
    if length:
        model.max_seq_length = min(length, model.max_seq_length or length)
    starts = range(0, len(dataset), _AT_A_TIME)
    sentences = [text for start in starts for text in dataset[start : start + _AT_A_TIME]["sentence"]]
    text = "".join(f"{sentence}\n" for sentence in sentences).encode("utf-8", "surrogatepass")
    digest = blake2b(text, digest_size=6)
    digest.update(f"{fingerprint(model)} {model.max_seq_length}".encode())
    folder, name = corpus.path.parent / "teachers", f"{digest.hexdigest()}.npy"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / f"{name}.lock"):  # another training of the same corpus may be at it: its vectors will do
        kept = Parts(folder)
        if name not in kept:
            lines, vectors = (folder / f"new-{digest.hexdigest()}{ending}" for ending in (".txt", ".npy"))
            with written_whole(lines) as unfinished:
                unfinished.write_bytes(text)
            progress.tell(f"vectors of {base}, which are learnt from (kept in {folder})")
            encode_file(model, lines, vectors, quiet=progress.quiet)
            lines.unlink()
            with kept.new(name) as path:
                vectors.replace(path)
    found = np.load(kept.path(name), mmap_mode="r")
    mean = found.mean(axis=0, dtype=np.float64)
    pieces = ((found[start : start + _AT_A_TIME] - mean).astype(np.float16) for start in starts)
    return dataset.add_column("teacher", [row.tobytes() for rows in pieces for row in rows])
