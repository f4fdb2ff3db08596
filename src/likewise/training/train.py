"""Training of a recipe on plain text: its run is prepared, stage by stage, and trained."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Transformer

from likewise.corpus import CorpusOptions, prepare
from likewise.corpus.inputs import GivenTexts, given_texts
from likewise.encoder.modules import undisturbed
from likewise.encoder.saved_models import is_sentence_encoder
from likewise.inference.load_model import base_name
from likewise.recipes import Recipe, find_recipe
from likewise.recipes.recipe import Run
from likewise.recipes.recipe_options import HeadOptions, TrainingOptions
from likewise.runs import processes
from likewise.runs.cache import being_made, find_in_cache
from likewise.runs.job import Resume
from likewise.runs.options import checked
from likewise.runs.releases import releases
from likewise.runs.whole_files import Values
from likewise.training.selection import Selection, choose_selection, last_checkpoint
from likewise.training.training_job import Training, check_updates, started
from likewise.training.training_result import TrainingResult, base_fingerprint, made_by
from likewise.training.unknown_language import advice
from likewise.transformers_output import no_bar


@checked
def train(
    recipe: str | Recipe,
    corpus: GivenTexts,
    *,
    base: SentenceTransformer | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str],
    preset: str | TrainingOptions | None = None,
    seed: int = 1,
    data: str | os.PathLike[str] | None = None,
    corpus_options: CorpusOptions | None = None,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
    **options: object,
) -> TrainingResult:
    """Train a sentence encoder on plain text.

    torchrun and `accelerate launch` train one model in several processes: a batch then has `batch_size` sentences per
    process, and all these sentences are negatives of each other.

    All input is checked before `out` is touched. The same call resumes an interrupted training and reaches the same
    weights as an uninterrupted training. If the training is already complete, its result is returned.

    Args:
        recipe: Name of a recipe of `likewise.RECIPES` or of an installed package, or a `Recipe`.
        corpus: Path to a file or a folder, a glob pattern, `bundled:wiki-sample`, or a list of these (see
            `likewise.corpus.prepare`); in Python also texts (a list, a column or any iterable) or rows (mappings or a
            DataFrame).
        base: Hugging Face name, path, `bundled:NAME`, or a loaded encoder; by default the recipe's own base.
        out: Path to save the model to.
        preset: Name of a preset of the recipe, by default the first one, or your own options, such as
            `likewise.recipes.ArcCSEOptions(margin=5)`.
        seed: Random seed of batches, masks, dropout and the training head.
        data: Path to SentEval's data, whose STS-B dev selects the checkpoint.
        corpus_options: Options of reading the corpus.
        resume: Whether an interrupted training must exist (True), is resumed if it exists ("auto"), or is ignored
            (False).
        overwrite: Whether to discard an interrupted training, and to replace the model in `out` once the new model is
            complete.
        quiet: Whether to print nothing.
        options: Options of the recipe, which override the preset; an unknown name is an error.

    Returns:
        The path of the best checkpoint's model, without training head, and its record.

    Raises:
        LikewiseError: If the input is invalid, or training diverges; the message names the cure.
        Stopped: If the training is interrupted; the same call resumes it.

    See also:
        `likewise.adapt`: Adapt an encoder to your own text with pairs from its passages.
        `likewise.train_characters`: Build an encoder from your own text without a base.
        `likewise.finetune`: Train an encoder on labeled rows.
        `likewise.compare`: Train several methods under one budget.

    Example:
        >>> import likewise
        >>> texts = ["The cat sleeps on the sofa.", "Prices rose again in May.", "Nobody shut the window."]
        >>> settings = {"batch_size": 3, "max_steps": 1, "select_by": "last", "quiet": True}
        >>> result = likewise.train("simcse", texts, base="bundled:minilm", out="runs/simcse", **settings)
        >>> result.steps
        1
        >>> likewise.load(result.path).encode("It is shut.").shape
        (384,)
    """
    method = find_recipe(recipe)
    chosen = method.options(preset, **options)
    base = base_name(method.default_base if base is None else base)
    progress = started(out, chosen, seed, quiet)
    method.check_base(base, chosen)
    texts = given_texts(corpus, corpus_options)
    at_least = chosen.batch_size * chosen.accumulation * processes.count()
    with processes.in_turn():
        sentences = prepare(texts.files, texts.options, at_least=at_least, progress=progress)
    progress.tell(sentences.report)
    selection = choose_selection(sentences.dataset, chosen, seed, data)
    progress.tell(f"checkpoint: {selection.description}")
    rows = selection.training_rows(sentences.dataset)
    run = Run(method, chosen, base, seed, sentences, rows, selection.evaluator, progress, _train_first)
    read = texts.options if texts.in_memory else corpus_options
    named = method.preset_name(preset)
    arguments = {"base": base, "out": out, "seed": seed, "data": data, "options": chosen}
    arguments |= {} if preset is None or named == "own" else {"preset": named}
    config = {"recipe": method.name, "corpus": texts.files, "corpus_options": read, **arguments}
    training = _ready(run, named, selection, config)
    return training.run(out, progress, resume=resume, overwrite=overwrite)


def _ready(run: Run, preset: str, selection: Selection, config: Values) -> Training:
    """Return the training of a run behind all of its stages."""
    recipe, options, base = run.recipe, run.options, run.base
    check_updates(len(run.rows), options)
    with no_bar():
        for stage in recipe.stages:
            run = stage(run)
        check_updates(len(run.rows), options)
        if run.encoder is None:
            run = run.built()
    encoder = run.encoder
    for module in encoder:
        if report := getattr(module, "report", None):
            run.progress.tell(report)
    collator = recipe.build_collator(encoder, options, run.seed)
    with undisturbed(encoder):  # an error of the views comes before the training, and takes no chance from it
        collator(run.rows.select(range(options.batch_size)).to_list())
    other_pooling = not isinstance(options, HeadOptions) or options.pooling != "own"
    if isinstance(encoder[0], Transformer) and (known := advice(encoder, base, run.sentences())):
        run.progress.tell(known)
    continued = isinstance(encoder[0], Transformer) and other_pooling
    return Training(
        job=f"train {recipe.name}",
        name=recipe.name,
        preset=preset,
        base=base,
        seed=run.seed,
        options=options,
        dataset=run.rows,
        corpus=run.corpus.record(),
        selection=selection,
        model=encoder,
        loss=recipe.build_loss(encoder, options),
        collator=collator,
        optimizers=lambda steps: recipe.build_optimizer(encoder, options, steps),
        config=config,
        as_shipped=continued and is_sentence_encoder(base),
        facts={"first_stage": made_by(run.base)} if run.base != base else {},
    )


def _train_first(run: Run, needed: Callable[[], bool]) -> str | None:
    """Train the run of a stage into the cache, if `needed` says so and it is not there; see `Run.train`."""
    facts = [run.recipe.name, run.options.to_dict(), base_fingerprint(run.base), run.corpus.sha256, processes.count()]
    facts += releases()
    if not processes.by_first(lambda: bool(find_in_cache("stages", facts)) or needed()):
        return None
    with ExitStack() as stack:  # all processes train, and the first keeps the model
        final, work = processes.by_first(lambda: stack.enter_context(being_made("stages", facts, resumes=True)))
        if work:
            run.progress.tell(f"first stage: {run.recipe.name} (cached)")
            training = _ready(run, next(iter(run.recipe.presets)), last_checkpoint(), {})
            training.run(work, run.progress, resume="auto", overwrite=False)
        processes.by_first(stack.close)
    return str(final)
