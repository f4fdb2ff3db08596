"""`likewise adapt`: from any text to an encoder that is better on that text, or to the base and a plain statement."""

from __future__ import annotations

import copy
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from likewise.corpus import CorpusOptions
from likewise.corpus.decoding import digest_of
from likewise.corpus.passages import OfferedPair, Passage, offered_pairs, read_passages
from likewise.encoder.word_part import fit_word_part, languages
from likewise.errors import counted
from likewise.evaluation.geometry import reciprocal_ranks
from likewise.evaluation.pairs import RatedPairs, correlations, pair_cosines
from likewise.inference.loading import load
from likewise.runs.job import Job, Resume, check_target, complete_installation, open_job
from likewise.runs.options import OptionError, checked_seed
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress
from likewise.runs.whole_files import write_text
from likewise.training.adapt_choice import AdaptResult, Candidate, Judge, adapted_card, adapted_page, sts_dev_pairs
from likewise.training.adapt_head import (
    BaseTexts,
    FrozenTexts,
    Head,
    HeadTrainingOptions,
    centred,
    softly_whitened,
    train_head,
)
from likewise.training.adapt_texts import (
    HELD_OUT,
    frozen_texts,
    held_out,
    mean_words,
    negations,
    sample_passages,
    unmeasured,
)
from likewise.training.checkpoints import base_fingerprint
from likewise.transformers_output import no_bar

WEIGHTS = (0.5, 0.7, 1.0)
"""Weights of the part of words that are tried."""

_DISTRACTORS = 4500


@no_bar()  # one bar is enough
def adapt(
    corpus: str | os.PathLike[str] | list[str],
    *,
    base: str | os.PathLike[str] = "bundled:minilm",
    out: str | os.PathLike[str],
    minutes: float = 15.0,
    passages: int = 0,
    width: int = 384,
    language: str = "english",
    seed: int = 1,
    data: str | os.PathLike[str] | None = None,
    corpus_options: CorpusOptions | None = None,
    keep_base_if_better: bool = True,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
) -> AdaptResult:
    """Adapt a sentence encoder to your own text, without labels.

    The text offers pairs: a title and its text, a question and what follows, a sentence and the rest of its passage.
    Candidates are made from the base by centring, by soft whitening, by adding the corpus's words, and by training on
    the pairs with hard negatives. The one that finds the passages of held-out sentences best is saved; STS-B dev, where
    its data is found, may not fall by more than a point. Where nothing beats the base by more than the noise, the base
    itself is saved. So it is if the text is single sentences, on which no gain can be measured.

    Args:
        corpus: a file, a folder, a glob, `bundled:wiki-sample`, or a list of these.
        base: a Hugging Face name, a folder, or `bundled:minilm`.
        out: the folder that becomes the model.
        minutes: time to spend, about; a larger corpus than fits is sampled.
        passages: passages used at most, whatever time they take, for the same result on every machine; 0: as many as
            fit `minutes`.
        width: numbers that the words of the corpus may add to each vector; 0: none, the vectors keep their length.
        language: the language of the corpus, for the forms of a word; "" treats each form as a separate word.
        seed: fixes pairs, batches and random vectors.
        data: the folder of SentEval's data, for STS-B dev.
        corpus_options: how the corpus is read.
        keep_base_if_better: save the base if no candidate beats it; otherwise the best candidate is saved, if any can
            be measured.
        resume, overwrite, quiet: as in `likewise.train`.

    Returns:
        The folder of the model and its record, with all candidates and the reason for the choice.

    Raises:
        LikewiseError: the input is wrong; the message names the cure.
        Stopped: it was interrupted; the same call resumes it.
    """
    progress = Progress(quiet)
    if not minutes > 0:
        raise OptionError(f"minutes is {minutes}: give a number above 0")
    if passages < 0:
        raise OptionError(f"passages is {passages}: give a number above 0, or 0 for as many as fit the time")
    if width < 0:
        raise OptionError(f"width is {width}: give a number above 0, or 0 for vectors as long as those of the base")
    if language and language not in languages():
        raise OptionError(f"language is {language!r}: give one of {', '.join(languages())}, or '' for none")
    checked_seed(seed)
    check_target(out)
    base = os.fspath(base)
    complete_installation(out)
    texts = BaseTexts(load(base), base)
    found = read_passages(corpus, corpus_options, seed=seed, tell=progress.tell)
    progress.tell(f"{counted(len(found), 'passage')}, {mean_words(found):.1f} words each")
    digest = digest_of("\n".join(f"{one.title}\t{one.text}" for one in found)).hex()
    sts = sts_dev_pairs(data)
    options = {"base": base, "minutes": minutes, "passages": passages, "seed": seed}
    options |= {"width": width, "language": language, "keep_base_if_better": keep_base_if_better}
    inputs = {"base": base_fingerprint(base, out), "corpus": digest, "STS-B dev": sts is not None}
    with open_job(out, Plan("adapt", options, inputs, format=3), resume=resume, overwrite=overwrite) as job:
        if job.finished is None:
            _Adapting(job, texts, found, sts, progress).run()
        assert job.finished is not None
        return AdaptResult(job.target, job.finished)


class _Adapting:
    """The stages of one job."""

    def __init__(
        self, job: Job, base: BaseTexts, passages: Sequence[Passage], sts: RatedPairs | None, progress: Progress
    ) -> None:
        self.job, self.base, self.sts, self.progress = job, base, sts, progress
        self.options = job.plan.options
        self.seed: int = self.options["seed"]
        self.all_passages = passages
        self.sts_texts = [*sts.first, *sts.second] if sts else []
        self.judge = Judge(None, None)
        self.measured: list[tuple[str, str]] = []
        self.candidates: list[Candidate] = []
        self.heads: dict[str, tuple[FrozenTexts, Head]] = {}

    def run(self) -> None:
        passages = sample_passages(self.job, self.base, self.all_passages, self.progress)
        pairs = offered_pairs(passages, seed=self.seed)
        self.held, training = held_out(pairs, passages, self.seed)
        self.unmeasured = unmeasured(passages, self.held, pairs)
        self.pool = list(dict.fromkeys(pair.second for pair in (*self.held, *pairs)))[: HELD_OUT + _DISTRACTORS]
        place = {text: row for row, text in enumerate(self.pool)}
        self.own = [place[pair.second] for pair in self.held]
        self.queries = [pair.first for pair in self.held]
        if self.unmeasured:  # nothing is encoded or trained, as nothing of it could be adopted
            self.candidates.append(Candidate("base", None, None, None, None))
        else:
            self._try_all(pairs, training)
        kinds = Counter(pair.kind for pair in pairs)
        self._save({"passages": len(passages), "pairs": dict(kinds), "held_out": len(self.held)})

    def _try_all(self, pairs: Sequence[OfferedPair], training: Sequence[OfferedPair]) -> None:
        """Make and score the candidates: those that need no training first."""
        negated = negations(training, self.seed)
        self.measured = negated[1::2]
        texts = [text for pair in pairs for text in (pair.first, pair.second)]
        texts += [*self.sts_texts, *(text for pair in negated for text in pair)]
        space = frozen_texts(self.job, self.base, texts, self.progress)
        rows = space.rows([(pair.first, pair.second) for pair in training])
        vectors = space.vectors.numpy()[np.unique(rows[:, 1])] if len(rows) else space.vectors.numpy()
        size = vectors.shape[1]
        self._score("base", space, Head(size))
        self._score("centred", space, centred(vectors))
        if len(vectors) > 4 * size:
            self._score("soft whitening", space, softly_whitened(vectors))
        start, first, trainings = Head(size), "", {"map": {"word_rate": 0.0}}
        if width := self.options["width"]:
            ids = space.base.tokens([one.text for one in self.all_passages])  # also those that did not fit the time
            settings = (size, width, self.seed, self.options["language"])
            part = fit_word_part(ids, space.base.encoder.tokenizer, space.base.embeddings, *settings)
            scored: dict[float, Candidate] = {}
            for weight in WEIGHTS:
                words = copy.deepcopy(part)
                words.weight = weight
                scored[weight] = self._score(f"words {weight}", space, Head(size, words))
            kept = {weight: one for weight, one in scored.items() if self.judge.keeps_sts(one)} or scored
            best = max(kept, key=lambda weight: kept[weight].gain or 0.0)
            start, first, trainings["map and words"] = self.heads[scored[best].name][1], f"words {best}, ", {}
        for what, changes in trainings.items():
            options = HeadTrainingOptions().updated(**changes)
            trained = train_head(start, space, rows, options, self.seed, self.progress, space.rows(negated[::2]))
            self._score(f"{first}trained {what}", space, trained)

    def _score(self, name: str, space: FrozenTexts, head: Head) -> Candidate:
        self.heads[name] = space, head
        ranks = reciprocal_ranks(*self._sides(name), np.array(self.own))
        sts = negation = None
        if self.sts is not None:
            sts, _ = correlations(pair_cosines(*np.split(space.under(head, self.sts_texts), 2)), self.sts.gold)
        if not self.candidates:
            self.judge = Judge(ranks, sts)
        if self.measured:
            sides = (space.under(head, side) for side in zip(*self.measured, strict=True))
            negation = 100 * (1 - float(pair_cosines(*sides).mean()))
        self.candidates.append(one := self.judge.score(name, ranks, sts, negation))
        self.progress.tell(f"{name}: MRR {one.mrr:.2f}" + (f", STS-B dev {sts:.2f}" if sts else ""))
        return one

    def _sides(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors that a candidate makes of the queries, (Q, D), and of the passages searched, (N, D)."""
        space, head = self.heads[name]
        return space.under(head, self.queries), space.under(head, self.pool)

    def _choose(self) -> tuple[Candidate, str]:
        base, others = self.candidates[0], self.candidates[1:]
        if self.unmeasured:
            return base, self.unmeasured
        best, reason = self.judge.best(others)
        if best is None and not self.options["keep_base_if_better"]:
            best = max(others, key=lambda one: one.gain or 0.0)
        return best or base, reason

    def _save(self, corpus: Mapping[str, Any]) -> None:
        chosen, reason = self._choose()
        model = self.base.encoder
        if chosen.name != "base":
            model = self.heads[chosen.name][1].on(model)
        facts = {
            "recipe": "adapt",
            "kind": "encoder",
            "base": self.options["base"],
            "chosen": chosen.name,
            "reason": reason,
            "candidates": [asdict(one) for one in self.candidates],
            "corpus": {**corpus, "searched": len(self.pool)},
        }
        shutil.rmtree(self.job.result)  # half of a model, after a kill
        model.save_pretrained(str(self.job.result), create_model_card=False)
        write_text(self.job.result / "README.md", adapted_card(facts, self.candidates, model))
        cosines = (np.empty((0, len(self.pool))),) * 2
        if self.queries:
            cosines = tuple(queries @ pool.T for queries, pool in map(self._sides, ("base", chosen.name)))
        page = adapted_page(facts, self.candidates, self.queries, self.pool, self.own, cosines)
        write_text(self.job.result / "report.html", page)
        self.job.finish(facts)
