"""`likewise adapt`: adapts an encoder to a text, or returns the base with the reason.

Candidates are proposed, and judged by retrieval on held-out passages, with STS-B dev as a guard.

Letters of the shapes: Q held-out sentences, N passages, D embedding.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer

from likewise.adaptation.adapt_options import AdaptOptions
from likewise.adaptation.adaptation_result import (
    AdaptResult,
    Candidate,
    adapted_card,
    adapted_page,
    advice,
    form_of,
    ranks_by_scores,
)
from likewise.adaptation.head import BaseTexts, FrozenTexts, Head, HeadTrainingOptions, train_head
from likewise.adaptation.texts import OwnText, frozen_texts, memory, negations, sample_passages, unmeasured
from likewise.corpus import CorpusOptions
from likewise.corpus.clean_text import digest_of
from likewise.corpus.counts import CorpusReport
from likewise.corpus.inputs import GivenTexts, given_texts
from likewise.corpus.languages import language_of
from likewise.corpus.passages import Passage, read_passages
from likewise.corpus.words import word_count
from likewise.encoder.settings import ModelSettings
from likewise.encoder.word_part import WordPart, fit_word_part
from likewise.errors import counted
from likewise.evaluation.bm25 import bm25
from likewise.evaluation.fusion import standardised
from likewise.evaluation.pairs import RatedPairs, correlations, pair_cosines
from likewise.evaluation.registry import rated_task
from likewise.evaluation.task import DataError
from likewise.inference.load_model import base_name, load
from likewise.runs.job import Job, Plan, Resume, check_target, complete_installation, open_job
from likewise.runs.options import checked
from likewise.runs.progress import Progress
from likewise.runs.whole_files import write_text
from likewise.training.training_result import base_fingerprint
from likewise.transformers_output import no_bar

GUARD = 1.0
"""Points of STS-B dev that an adapted encoder may lose."""
LEAST = 0.05
"""Fraction of the base's MRR that a candidate has to gain.

A sentence shares words with the rest of its passage, more than a query does: smaller gains did not carry over to
judged queries (benchmarks/notebook/adapt.md).
"""


@checked
@no_bar()  # one bar is enough
def adapt(
    corpus: GivenTexts,
    *,
    base: SentenceTransformer | str | os.PathLike[str] = "bundled:minilm",
    out: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    corpus_options: CorpusOptions | None = None,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
    **options: Any,
) -> AdaptResult:
    """Adapt a sentence encoder to your own text, without labels.

    The text provides training pairs: a title and its text, a question and the following sentence, a sentence and the
    rest of its passage. Candidates add the words of the corpus to the vectors of the base, or train a map on the pairs
    with hard negatives. The candidate that retrieves the passages of held-out sentences best is saved; its score on
    STS-B dev, if the data is available, must not fall by more than a point. If no candidate beats the base by more than
    the noise, or if the text consists of single sentences, on which no gain can be measured, the base is saved. The
    result also reports the gain when BM25 is added to the vectors, as in `likewise.search`.

    Args:
        corpus: Path to a file or folder, a glob pattern, `bundled:wiki-sample`, or a list of these; in Python also
            texts (a list, a column or any iterable) or rows (mappings or a DataFrame).
        base: Hugging Face name, path, `bundled:NAME`, or a loaded encoder.
        out: Path to save the model to.
        data: Path to the folder of SentEval's data, for STS-B dev.
        corpus_options: Options of reading the corpus.
        resume, overwrite, quiet: See `likewise.train`.
        options: Options of `likewise.adaptation.AdaptOptions`: minutes, passages, width, plain, language and seed.

    Returns:
        The path of the model and its record, with all candidates and the reason for the choice.

    Raises:
        LikewiseError: If the input is invalid; the message names the cure.
        Stopped: If the adaptation is interrupted; the same call resumes it.

    Example:
        No gain can be measured on single sentences, so the base is saved:

        >>> import likewise
        >>> texts = ["The valve is stuck.", "The pump is leaking.", "The gauge is broken."]
        >>> result = likewise.adapt(texts, base="bundled:minilm", out="runs/adapted", quiet=True)
        >>> result.chosen
        'base'
    """
    chosen = AdaptOptions(**options)
    progress = Progress(quiet)
    check_target(out)
    complete_installation(out)
    base = base_name(base)
    settings = ModelSettings.named(base)
    settings.check(
        base,
        "adapt",
        routes="it trains one map for all texts; use `finetune triplets`, which trains both routes",
        truncate_dim="its map is trained on full vectors; omit it",
    )
    if prompts := sorted({text for text in (settings.prompt("query"), settings.prompt("document")) if text}):
        progress.tell(
            f"{base} has prompts ({', '.join(map(repr, prompts))}), but adapt compares texts without them. A search "
            f"adds them to its texts, so compare both models on your own queries, for example by `likewise choose`"
        )
    base_texts = BaseTexts(load(base, precision="fp32"), base)
    text, report = given_texts(corpus, corpus_options), CorpusReport()
    passages = read_passages(text.files, text.options, seed=chosen.seed, progress=progress, report=report)
    words = np.mean([word_count(passage.text) for passage in passages])
    progress.tell(f"{counted(len(passages), 'passage')}, {words:.1f} words each")
    digest = digest_of("\n".join(f"{passage.title}\t{passage.text}" for passage in passages)).hex()
    sts = sts_dev_pairs(data)
    language = language_of(passage.text for passage in passages)
    if sts is not None and language not in ("", "English"):
        progress.tell(f"the text is {language}, so STS-B dev, which is English, is not used")
        sts = None
    inputs = {"base": base_fingerprint(base, out), "corpus": digest, "STS-B dev": sts is not None}
    plan = Plan("adapt", {"base": base, **chosen.to_dict()}, inputs, format=6, defaults=chosen.defaults())
    with open_job(out, plan, resume=resume, overwrite=overwrite) as job:
        if job.finished is None:
            _adapted(job, base_texts, passages, report, chosen, sts, progress)
        else:
            progress.tell(job.already)
        assert job.finished is not None
        return AdaptResult(job.target, job.finished)


class Contest:
    """The candidates for a text, scored as they come in; the base is the first.

    Args:
        space: Vectors of all texts by the base.
        negated: Sentences and their negations for the evaluation.
        sts: Rated pairs for the guard; None without data.
    """

    def __init__(
        self,
        space: FrozenTexts,
        text: OwnText,
        negated: Sequence[tuple[str, str]],
        sts: RatedPairs | None,
        progress: Progress,
    ) -> None:
        self.space, self.text, self.negated, self.sts, self.progress = space, text, negated, sts, progress
        self.heads: dict[str, Head] = {}
        self.candidates: list[Candidate] = []
        self.enter("base", Head(space.vectors.shape[1]))

    def propose(self, words: WordPart | None, negated: list[tuple[str, str]], seed: int) -> None:
        """Enter the words of the corpus, a map that is trained on top of them, and one that is trained with them.

        Without words the map is trained alone. `negated` are sentences and their negations, to learn from.
        """
        pairs = self.space.rows([(pair.first, pair.second) for pair in self.text.training])  # (P, 2)
        start, first, trained = Head(self.space.vectors.shape[1], words), "", {"map": {"word_rate": 0.0}}
        if words is not None:
            first = f"words {words.weight}"
            self.enter(first, start)
            first, trained["map and words"] = f"{first}, ", {}
        for what, changes in trained.items():
            options = HeadTrainingOptions().updated(**changes)
            head = train_head(start, self.space, pairs, options, seed, self.progress, self.space.rows(negated))
            self.enter(f"{first}trained {what}", head)

    def enter(self, name: str, head: Head) -> None:
        """Score a candidate and keep it."""
        self.heads[name] = head
        ranks = self._ranks(self.scores(name))
        if name == "base":
            self._base_ranks = ranks
        sts = negation = None
        if self.sts is not None:
            sides = self.space.under(head, self.sts.first), self.space.under(head, self.sts.second)
            sts, _ = correlations(pair_cosines(*sides), self.sts.gold)
        if self.negated:
            both = (self.space.under(head, side) for side in zip(*self.negated, strict=True))
            negation = 100 * (1 - float(pair_cosines(*both).mean()))
        scored = Candidate(name, 100 * float(ranks.mean()), *gained(ranks, self._base_ranks), sts, negation)
        self.candidates.append(scored)
        self.progress.tell(f"{name}: MRR {scored.mrr:.2f}" + ("" if sts is None else f", STS-B dev {sts:.2f}"))

    def scores(self, name: str) -> np.ndarray:
        """Return the cosines (Q, N) of the held-out sentences with all passages, by a candidate."""
        head = self.heads[name]
        return self.space.under(head, self.text.queries) @ self.space.under(head, self.text.pool).T

    def beside_bm25(self, name: str, language: str) -> tuple[float, float]:
        """Return a candidate's gain over the base with BM25 added to both, in points of MRR, and the noise."""
        words = standardised(bm25(self.text.queries, self.text.pool, language))
        base, other = (self._ranks(standardised(self.scores(side)) + words) for side in ("base", name))
        return gained(other, base)

    def _ranks(self, scores: np.ndarray) -> np.ndarray:
        """Return the reciprocal ranks (Q,) of the passages that the sentences were taken from."""
        return ranks_by_scores(scores, np.array(self.text.own))


def gained(ranks: np.ndarray, base: np.ndarray) -> tuple[float, float]:
    """Return the mean gain of reciprocal ranks (Q,) over the base's ranks, and its two standard errors, times 100.

    >>> gained(np.array([1.0, 0.5]), np.array([0.5, 0.5]))[0]
    25.0
    """
    change = 100 * (ranks - base)
    return float(change.mean()), 2 * float(change.std()) / math.sqrt(len(change))


def best_of(candidates: Sequence[Candidate]) -> tuple[str, str]:
    """Return the name of the best of all candidates, "base" if the base is to stay, and the reason in a sentence."""
    base, *others = candidates
    eligible = [
        candidate
        for candidate in others  # without STS-B dev's data nothing is guarded
        if candidate.sts_dev is None or base.sts_dev is None or candidate.sts_dev >= base.sts_dev - GUARD
    ]
    if not eligible:
        return "base", f"every candidate loses more than {GUARD:.0f} point of STS-B dev"
    best = max(eligible, key=lambda candidate: candidate.gain or 0.0)
    gain, noise, least = best.gain or 0.0, best.noise or 0.0, LEAST * (base.mrr or 0.0)
    if gain <= max(noise, least):
        return "base", (
            f"no candidate retrieves the passages of held-out sentences significantly better (best: {best.name}, "
            f"{gain:+.2f} points of MRR; noise {noise:.2f}, minimum gain {least:.2f})"
        )
    return best.name, (
        f"it retrieves the passages of held-out sentences best: MRR {best.mrr:.2f}, {gain:+.2f} over the base "
        f"(noise {noise:.2f})"
    )


def sts_dev_pairs(data: str | os.PathLike[str] | None) -> RatedPairs | None:
    """Return the pairs of STS-B dev; None if there is no data.

    Raises:
        DataError: If `data` is given but contains no STS-B dev, or the file is malformed.
    """
    try:
        return rated_task("sts-b-dev").pairs(data)
    except DataError:
        if data is not None:
            raise
        return None


def _adapted(
    job: Job,
    base: BaseTexts,
    passages: Sequence[Passage],
    report: CorpusReport,
    options: AdaptOptions,
    sts: RatedPairs | None,
    progress: Progress,
) -> None:
    """Propose, score, choose, save."""
    rated = [*sts.first, *sts.second] if sts else []
    text = OwnText.of(sample_passages(job, base, passages, rated, options, progress), options.seed)
    if reason := unmeasured(text):  # nothing is encoded or trained, as nothing of it could be adopted
        _save(job, base.encoder, "base", reason, text, report, [Candidate("base")])
        return
    negated = negations(text.training, options.seed)
    needed = [side for pair in text.pairs for side in (pair.first, pair.second)]
    everything = list(dict.fromkeys([*needed, *rated, *(side for pair in negated for side in pair)]))
    if not progress.quiet:
        progress.tell(f"about {memory(base, everything, text) / 1e9:.1f} GB of memory")
    space = frozen_texts(job, base, everything, progress)
    contest = Contest(space, text, negated[1::2], sts, progress)
    contest.propose(_words(base, passages, options), negated[::2], options.seed)
    chosen, reason = best_of(contest.candidates)
    model = base.encoder if chosen == "base" else contest.heads[chosen].on(base.encoder)
    _save(job, model, chosen, reason, text, report, contest.candidates, contest)


def _words(base: BaseTexts, passages: Sequence[Passage], options: AdaptOptions) -> WordPart | None:
    """Return the part of words of all passages, including passages that did not fit into the time; None for none."""
    if not (width := 0 if options.plain else options.width):
        return None
    size = base.encoder.get_embedding_dimension()
    assert size is not None
    ids, tokenizer = base.tokens([passage.text for passage in passages]), base.encoder.tokenizer
    return fit_word_part(ids, tokenizer, base.embeddings, size, width, options.seed, options.language)


def _save(
    job: Job,
    model: SentenceTransformer,
    chosen: str,
    reason: str,
    text: OwnText,
    report: CorpusReport,
    candidates: Sequence[Candidate],
    contest: Contest | None = None,
) -> None:
    """Write the model, its card and its page, and finish the job."""
    with_bm25 = None
    if contest and chosen != "base":
        with_bm25 = list(contest.beside_bm25(chosen, job.plan.options["language"]))
    facts = {
        "recipe": "adapt",
        "kind": "encoder",
        "base": job.plan.options["base"],
        "chosen": chosen,
        "reason": reason,
        "form": form_of(model),
        "advice": advice(contest is not None, with_bm25),
        "beside_bm25": with_bm25,
        "candidates": [asdict(candidate) for candidate in candidates],
        "corpus": text.facts | {"report": report.to_dict()},
    }
    shutil.rmtree(job.result)  # half of a model, after a kill
    model.save_pretrained(str(job.result), create_model_card=False)
    write_text(job.result / "README.md", adapted_card(facts, candidates, model))
    none = np.empty((0, len(text.pool)))
    before, after = (contest.scores("base"), contest.scores(chosen)) if contest else (none, none)
    page = adapted_page(facts, candidates, text.queries, text.pool, text.own, (before, after))
    write_text(job.result / "report.html", page)
    job.finish(facts)
