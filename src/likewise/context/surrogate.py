"""The surrogate: a Siamese encoder (or a cross-encoder) that learns the similarity that Origin harvested.

Sun et al. 2022, "Sentence Similarity Based on Contexts", section 3.4: the cosine of the two sentence vectors is to be
the harvested similarity, by mean squared error; section 5.6: both sentences in one cross-encoder, for comparison. Where
a value comes from, and what differs from the paper: docs/systems/contexts.md.

Profiles, this library's, are another lesson: which contexts of a workspace each of its sentences fits. In a batch of B
sentences, half of the B contexts are the best contexts of a sentence each, found as for a pair, and half are random:
some contexts are near, as in equation 4, and most are not. The paper distills one number for a pair.

Letters of the shapes: B sentences of a batch, C contexts of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset
from datasets.table import InMemoryTable
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.cross_encoder.data_collator import CrossEncoderDataCollator
from sentence_transformers.cross_encoder.losses import MSELoss
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
from torch import Tensor, nn
from torch.nn.functional import normalize
from transformers import set_seed

from likewise.context.context_sets import ContextFinder
from likewise.context.harvested import SPLITS, ScoredPairs, ScoreScale, read_harvest
from likewise.context.stage_options import SURROGATE, HarvestOptions, Rule, SelectionOptions, SurrogateOptions
from likewise.context.states import States
from likewise.context.workspace import ContextError, Workspace
from likewise.corpus.clean_text import digest_of
from likewise.corpus.words import word_count
from likewise.data.bundled import resolve_model
from likewise.encoder.build import build_encoder, build_prompt_encoder
from likewise.encoder.location import LoadError, check_loadable
from likewise.encoder.modules import find_part, without_training_head
from likewise.encoder.training_modules import FrozenCopy
from likewise.encoder.word_vectors import check_source
from likewise.errors import first_line, limit_of
from likewise.evaluation.checkpoint import CheckpointEvaluator, PairPredictions, scores_evaluator
from likewise.inference.load_model import load
from likewise.losses.encoder_loss import AnchoredLoss, ProfileLoss
from likewise.recipes.collator import Reading, TextCollator, distillation_readings
from likewise.recipes.gclsr import build_light_student
from likewise.runs.job import Resume
from likewise.runs.options import OptionError
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record
from likewise.training.finetune import collate_rows, to_continue
from likewise.training.objectives import LABEL
from likewise.training.selection import Selection, last_checkpoint, sts_dev
from likewise.training.training_job import Training, check_updates, started
from likewise.training.training_result import TrainingResult
from likewise.transformers_output import no_bar, only_errors

_NEAR = SelectionOptions(size=1, candidates=200)
_STAGES = ("index", "states", "discriminator")
_FITTED = 1_000
"""Pairs whose cosines by the base fix the scale."""
_Path = str | os.PathLike[str]


class Profiles:
    """The sentences of a workspace, and how well they fit its contexts, which the seed draws.

    Attributes:
        sentences: Distinct sentences of 4 to 40 words, as in a harvest.

    Raises:
        ContextError: If a stage is missing or stale, or there is nothing to learn.
    """

    def __init__(self, work: str | os.PathLike[str], options: SurrogateOptions, seed: int) -> None:
        workspace = Workspace(os.fspath(work))
        self.stages = [workspace.require(name) for name in _STAGES]
        self.states, self.options, self.seed = States(workspace), options, seed
        if options.learns == "cosine-profiles" and not self.states.vectors.shape[1]:
            raise ContextError(
                f"{workspace.path / 'states'} contains only word pieces, which have no cosines: use learns=profiles, "
                f"or rebuild it with states.keep=tokens"
            )
        self.finder = ContextFinder.open(workspace.path, self.states)
        few, many = HarvestOptions().min_words, HarvestOptions().max_words
        texts = dict.fromkeys(self.states.store.texts())
        self.sentences = [text for text in texts if few <= word_count(text) <= many]

    def __str__(self) -> str:
        return f"{len(self.sentences):,} sentences and {self.states.store.n_contexts:,} contexts"

    def record(self) -> Record:
        """Return the facts for the record of a run."""
        return {
            "sources": self.stages[0].record["sources"],
            "sentences": len(self.sentences),
            "unit": "sentences of a workspace",
            "sha256": digest_of(repr([stage.fingerprint for stage in self.stages])).hex(),
            "contexts": self.states.store.n_contexts,
        }

    def contexts(self, sentences: Sequence[str]) -> np.ndarray:
        """Return the contexts of a batch by number, int64 (C,), C at most B; they depend on seed and batch alone."""
        half = len(sentences) // 2
        digest = blake2b("\n".join(sentences).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        rng = np.random.default_rng([self.seed, int.from_bytes(digest)])
        near = [self.finder.find(text, _NEAR) for text in sentences[:half]]
        drawn = rng.choice(self.states.store.n_contexts, len(sentences) - half)
        return np.unique(np.concatenate([*near, drawn]).astype(np.int64))

    def texts(self, contexts: np.ndarray) -> list[str]:
        """Return the text around the gap of each context, a sentence on either side."""
        return [" ".join(sides) for sides in zip(*self.states.store.side_texts(contexts, 1), strict=True)]

    def logits(self, sentences: Sequence[str], contexts: np.ndarray) -> Tensor:
        """Return the teacher's logits (B, C), whose softmax over the contexts is the profile of a sentence."""
        if self.options.learns == "profiles":
            ranker = self.finder.ranker
            return ranker.sentence_parts(self.states.read(sentences)) @ ranker.context_parts(contexts).T
        known = (torch.from_numpy(self.states.vectors_of(some)) for some in (sentences, self.texts(contexts)))
        of_sentences, of_contexts = (normalize(vectors.float(), dim=1) for vectors in known)
        return of_sentences @ of_contexts.T / self.options.temperature

    def batch(self, rows: list[Record]) -> Record:
        """Return the texts of a batch by column, and the teacher's logits."""
        sentences = [row["sentence"] for row in rows]
        contexts = self.contexts(sentences)
        return {"sentence": sentences, "context": self.texts(contexts), LABEL: self.logits(sentences, contexts)}


def distill(
    harvest: str | os.PathLike[str] | None = None,
    *,
    work: str | os.PathLike[str] | None = None,
    base: str | os.PathLike[str] = "bundled:minilm",
    out: str | os.PathLike[str],
    preset: str | SurrogateOptions | None = None,
    seed: int = 1,
    data: str | os.PathLike[str] | None = None,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
    **options: object,
) -> TrainingResult:
    """Train a surrogate encoder on a harvest, or on the contexts of a workspace.

    Args:
        harvest: Path to the folder of shards; see `likewise.context.harvested.read_harvest`.
        work: Path to the workspace whose profiles are the targets instead of a harvest (`preset="profiles"`).
        base: Name or path of the base: a Hugging Face name, a folder, or `bundled:NAME`; with `pooling="own"`, any
            saved encoder.
        out: Path to save the model to: a SentenceTransformer of stock modules, or a CrossEncoder.
        preset: Name of a preset, by default the first one, or your own `SurrogateOptions`.
        seed: Random seed of batches, dropout and the cross-encoder's first weights.
        data: Path to a folder in SentEval's layout; its STS-B dev set can select the checkpoint.
        resume, overwrite, quiet: See `likewise.train`.
        options: Options of `SurrogateOptions`, which override the preset.

    Returns:
        The path of the model and its record, whose entry 'test' is the mean squared error on the test pairs of the
        harvest.

    Raises:
        LikewiseError: If the input is invalid, or training diverges; the message names the cure.
        Stopped: If the training is interrupted; the same call resumes it.

    Example:
        >>> import likewise
        >>> import pyarrow
        >>> from pathlib import Path
        >>> from pyarrow import parquet
        >>> others = ["Rain falls.", "He sold his car.", "It is wet.", "She sings."]
        >>> pairs = {"sentence1": ["It rains."] * 4, "sentence2": others, "score": [0.9, 0.1, 0.7, 0.2]}
        >>> pairs["split"] = ["train", "train", "train", "test"]
        >>> Path("harvest").mkdir()
        >>> parquet.write_table(pyarrow.table(pairs), "harvest/0.parquet")
        >>> settings = {"batch_size": 2, "max_steps": 1, "select_by": "last", "quiet": True}
        >>> result = likewise.distill("harvest", out="runs/student", **settings)
        >>> result.steps
        1
    """
    chosen = SURROGATE.options(preset, **options)
    of_scores = chosen.learns == "scores"
    source, other = (harvest, work) if of_scores else (work, harvest)
    if source is None or other is not None:
        raise OptionError(
            "scores are learnt from a harvest: give --harvest and no --work, or --work with --preset profiles"
            if of_scores
            else f"learns={chosen.learns} learns from a workspace: give --work and no --harvest"
        )
    progress = started(out, chosen, seed, quiet)
    base = os.fspath(base)
    if chosen.pooling == "light":
        check_source(base)
    else:
        check_loadable(base)
    lesson = (_of_scores if of_scores else _of_profiles)(source, base, chosen, seed, data, progress)
    progress.tell(f"checkpoint: {lesson['selection'].description}")
    training = Training(
        job="context distill",
        name=SURROGATE.name,
        preset=SURROGATE.preset_name(preset),
        base=base,
        seed=seed,
        options=chosen,
        **lesson,
    )
    return training.run(out, progress, resume=resume, overwrite=overwrite)


def student_of(base: str, options: SurrogateOptions, texts: Sequence[str] = ()) -> tuple[SentenceTransformer, Any]:
    """Return the encoder to train, and what makes of it the model to save; a light one has the words of the texts."""
    if options.pooling == "own":
        return to_continue(base)
    if options.pooling == "light":
        student = build_light_student(base, texts)
    elif options.pooling == "mask":
        student = build_prompt_encoder(base, head=False)
    else:
        student = build_encoder(base, pooling=options.pooling, head=False)
    return student, without_training_head


def _build(base: str, options: SurrogateOptions, pairs: ScoredPairs) -> tuple[Any, nn.Module, Any, Any]:
    """Return the model, its loss, its collator, and what makes of it the model to save."""
    if options.structure == "siamese":
        encoder, export = student_of(base, options, [text for side in pairs.texts() for text in side])
        if not options.anchor:
            return encoder, CosineSimilarityLoss(encoder), collate_rows(encoder, options.max_length), export
        teacher = load(base, precision="fp32")
        encoder.append(FrozenCopy(teacher))
        own, plain = distillation_readings(encoder, teacher, options.max_length)
        plains = dict.fromkeys(("plain_sentence1", "plain_sentence2"), plain)
        return encoder, AnchoredLoss(encoder, options), TextCollator(_with_teacher, own, plains, (LABEL,)), export
    try:
        with no_bar(), only_errors():  # its last layer is new, as it should be
            model = CrossEncoder(
                resolve_model(base),
                num_labels=1,
                max_length=options.max_length or None,
                # The score itself is regressed on, and not what a sigmoid makes of it.
                activation_fn=nn.Identity(),
            )
    except (OSError, ValueError) as error:
        if limit := limit_of(error):
            raise LoadError(f"--base {base} cannot be read: {limit}") from error
        raise LoadError(
            f"--base {base}: it cannot become a cross-encoder ({first_line(error)}). Give a transformer: a folder "
            "with config.json, a Hugging Face name that this machine can reach, bundled:minilm or bundled:mpnet."
        ) from error
    collator = CrossEncoderDataCollator(preprocess_fn=model.preprocess, valid_label_columns=[LABEL])
    return model, MSELoss(model), collator, lambda trained: trained.eval()


def _selection(dev: ScoredPairs, options: SurrogateOptions, scale: ScoreScale) -> Selection:
    if options.select_by == "last":
        return last_checkpoint()
    if len(dev) < 2:
        raise OptionError(
            f"the harvest has {len(dev)} dev pairs, but 2 are needed: harvest more, or use select_by=last"
        )
    evaluator = _evaluator(dev, options, scale, "dev")
    return Selection(evaluator.description, evaluator)


def _evaluator(pairs: ScoredPairs, options: SurrogateOptions, scale: ScoreScale, name: str) -> CheckpointEvaluator:
    few = pairs.sample(max(2, options.held_out))
    return scores_evaluator(
        *few.texts(), few.scores, to_target=scale.to_target, from_target=scale.from_target, name=name
    )


def _of_scores(
    harvest: _Path, base: str, options: SurrogateOptions, seed: int, data: _Path | None, progress: Progress
) -> Record:
    """Return the arguments of `Training` to learn the scores of a harvest."""
    with progress.bar("reading the harvest"):
        pairs = read_harvest(harvest)
    progress.tell(pairs)
    train, dev, test = (pairs.splits[name] for name in SPLITS)
    check_updates(len(train), options, "pairs")
    set_seed(seed)  # a cross-encoder's last layer starts at random
    model, loss, collator, export = _build(base, options, train)
    scale = _scale(train, options.scale, model)
    targets = pa.array(scale.to_target(train.scores).astype(np.float32))

    def at_end(model: SentenceTransformer) -> Record:
        return {"test": _evaluator(test, options, scale, "test")(model)} if len(test) > 1 else {}

    return {
        "dataset": Dataset(InMemoryTable(train.table.drop_columns("score").append_column(LABEL, targets))),
        "corpus": pairs.record(),
        "selection": sts_dev(options, data, train.texts()[0]) or _selection(dev, options, scale),
        "model": model,
        "loss": loss,
        "collator": collator,
        "export": export,
        "at_end": at_end,
        "facts": {"scale": asdict(scale)},
    }


def _of_profiles(
    work: _Path, base: str, options: SurrogateOptions, seed: int, data: _Path | None, progress: Progress
) -> Record:
    """Return the arguments of `Training` to learn the contexts of a workspace."""
    with progress.bar("opening the workspace"):
        profiles = Profiles(work, options, seed)
    progress.tell(profiles)
    check_updates(len(profiles.sentences), options)
    set_seed(seed)
    encoder, export = student_of(base, options)
    return {
        "dataset": Dataset.from_dict({"sentence": profiles.sentences}),
        "corpus": profiles.record(),
        "selection": sts_dev(options, data, profiles.sentences) or last_checkpoint(),
        "model": encoder,
        "loss": ProfileLoss(encoder, options),
        "collator": TextCollator(profiles.batch, Reading.prompted(encoder, options.max_length), {}, (LABEL,)),
        "export": export,
    }


def _with_teacher(rows: list[Record]) -> Record:
    """Return the pairs for the student and for the teacher, and their targets."""
    pairs = {name: [row[name] for row in rows] for name in ("sentence1", "sentence2")}
    plain = {f"plain_{name}": texts for name, texts in pairs.items()}
    return pairs | plain | {LABEL: torch.tensor([row[LABEL] for row in rows])}


def _scale(pairs: ScoredPairs, rule: Rule, model: SentenceTransformer | CrossEncoder) -> ScoreScale:
    """Return the scale of the targets; for the rule "base" by the cosines of the teacher or of the new student."""
    if rule != "base":
        return ScoreScale.fit(rule, pairs.scores)
    few = pairs.sample(_FITTED)
    teacher = find_part(model, FrozenCopy)
    return ScoreScale.fit(rule, few.scores, PairPredictions(*few.texts())(teacher.encoder if teacher else model))
