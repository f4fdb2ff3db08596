"""`likewise adapt`: from any text to an encoder that is better on that text, or to the base and a plain statement."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer

from likewise.adaptation.adapt_options import AdaptOptions
from likewise.adaptation.contest import Contest, sts_dev_pairs
from likewise.adaptation.head import BaseTexts
from likewise.adaptation.result import AdaptResult, Candidate, adapted_card, adapted_page, advice, form_of
from likewise.adaptation.texts import OwnText, frozen_texts, memory, negations, sample_passages, unmeasured
from likewise.corpus import CorpusOptions
from likewise.corpus.given import GivenTexts, given_texts
from likewise.corpus.lines_and_rows import digest_of
from likewise.corpus.passages import Passage, read_passages
from likewise.encoder.settings import ModelSettings
from likewise.encoder.word_part import WordPart, fit_word_part
from likewise.errors import counted
from likewise.evaluation.pairs import RatedPairs
from likewise.inference.load_model import base_name, load
from likewise.inference.model_export import keep_export
from likewise.runs.arguments import checked
from likewise.runs.job import Job, Resume, check_target, complete_installation, open_job
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress
from likewise.runs.whole_files import write_text
from likewise.training.result import base_fingerprint
from likewise.transformers_output import no_bar


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

    The text offers pairs: a title and its text, a question and what follows, a sentence and the rest of its passage.
    Candidates are made from the base by adding the words of the corpus, and by training on the pairs with hard
    negatives. The one whose vectors find the passages of held-out sentences best is saved; STS-B dev, where its data is
    found, may not fall by more than a point. If nothing beats the base by more than the noise, the base itself is
    saved, and so it is if the text is single sentences, on which no gain can be measured. The result also says what
    the vectors are worth if BM25 stands beside them, as in `likewise.search`.

    Args:
        corpus: a file, a folder, a glob, `bundled:wiki-sample`, or a list of these; in Python also texts: a list, a
            column, any iterable. Rows are mappings or a DataFrame.
        base: a Hugging Face name, a folder, `bundled:NAME`, or an encoder that is loaded.
        out: the folder that becomes the model.
        data: the folder of SentEval's data, for STS-B dev.
        corpus_options: how the corpus is read.
        resume, overwrite, quiet: as in `likewise.train`.
        options: those of `likewise.adaptation.AdaptOptions`: minutes, passages, width, plain, language, seed and
            keep_base_if_better.

    Returns:
        The folder of the model and its record, with all candidates and the reason for the choice.

    Raises:
        LikewiseError: the input is wrong; the message names the cure.
        Stopped: it was interrupted; the same call resumes it.
    """
    chosen = AdaptOptions(**options)
    progress = Progress(quiet)
    check_target(out)
    complete_installation(out)
    base = base_name(base)
    ModelSettings.named(base).check(
        base,
        "adapt",
        routes="it has one map for all texts; take `finetune triplets`, which teaches both routes",
        truncate_dim="its map is learnt on whole vectors; give the base without it",
    )
    texts = BaseTexts(load(base, precision="fp32"), base)
    given = given_texts(corpus, corpus_options)
    passages = read_passages(given.files, given.options, seed=chosen.seed, progress=progress)
    words = np.mean([len(one.text.split()) for one in passages])
    progress.tell(f"{counted(len(passages), 'passage')}, {words:.1f} words each")
    digest = digest_of("\n".join(f"{one.title}\t{one.text}" for one in passages)).hex()
    sts = sts_dev_pairs(data)
    inputs = {"base": base_fingerprint(base, out), "corpus": digest, "STS-B dev": sts is not None}
    plan = Plan("adapt", {"base": base, **chosen.to_dict()}, inputs, format=6, defaults=chosen.defaults())
    with open_job(out, plan, resume=resume, overwrite=overwrite) as job:
        if job.finished is None:
            _adapted(job, texts, passages, chosen, sts, progress)
            new = True
        else:
            progress.tell(job.already)
            new = False
        assert job.finished is not None
        found = AdaptResult(job.target, job.finished)
    if new:
        keep_export(found.path, [one.text for one in passages], progress)
    return found


def _adapted(
    job: Job,
    base: BaseTexts,
    passages: Sequence[Passage],
    options: AdaptOptions,
    sts: RatedPairs | None,
    progress: Progress,
) -> None:
    """Propose, score, choose, save."""
    rated = [*sts.first, *sts.second] if sts else []
    text = OwnText.of(sample_passages(job, base, passages, rated, options, progress), options.seed)
    if reason := unmeasured(text):  # nothing is encoded or trained, as nothing of it could be adopted
        _save(job, base.encoder, "base", reason, text, [Candidate("base")])
        return
    negated = negations(text.training, options.seed)
    needed = [side for pair in text.pairs for side in (pair.first, pair.second)]
    everything = list(dict.fromkeys([*needed, *rated, *(one for pair in negated for one in pair)]))
    if not progress.quiet:
        progress.tell(f"about {memory(base, everything, text) / 1e9:.1f} GB of memory")
    space = frozen_texts(job, base, everything, progress)
    contest = Contest(space, text, negated[1::2], sts, progress)
    contest.propose(_words(base, passages, options), negated[::2], options.seed)
    chosen, reason = contest.choose(options.keep_base_if_better)
    model = base.encoder if chosen == "base" else contest.heads[chosen].on(base.encoder)
    _save(job, model, chosen, reason, text, contest.candidates, contest)


def _words(base: BaseTexts, passages: Sequence[Passage], options: AdaptOptions) -> WordPart | None:
    """Return the part of words of all passages, also of those that did not fit the time; None for none."""
    if not (width := options.word_dimensions):
        return None
    size = base.encoder.get_embedding_dimension()
    assert size is not None
    ids, tokenizer = base.tokens([one.text for one in passages]), base.encoder.tokenizer
    return fit_word_part(ids, tokenizer, base.embeddings, size, width, options.seed, options.language)


def _save(
    job: Job,
    model: SentenceTransformer,
    chosen: str,
    reason: str,
    text: OwnText,
    candidates: Sequence[Candidate],
    contest: Contest | None = None,
) -> None:
    """Write the model, its card and its page, and finish the job."""
    beside = None
    if contest and chosen != "base":
        beside = list(contest.beside_bm25(chosen, job.plan.options["language"]))
    facts = {
        "recipe": "adapt",
        "kind": "encoder",
        "base": job.plan.options["base"],
        "chosen": chosen,
        "reason": reason,
        "form": form_of(model),
        "advice": advice(contest is not None, beside),
        "beside_bm25": beside,
        "candidates": [asdict(one) for one in candidates],
        "corpus": text.facts,
    }
    shutil.rmtree(job.result)  # half of a model, after a kill
    model.save_pretrained(str(job.result), create_model_card=False)
    write_text(job.result / "README.md", adapted_card(facts, candidates, model))
    none = np.empty((0, len(text.pool)))
    before, after = (contest.scores("base"), contest.scores(chosen)) if contest else (none, none)
    page = adapted_page(facts, candidates, text.queries, text.pool, text.own, (before, after))
    write_text(job.result / "report.html", page)
    job.finish(facts)
