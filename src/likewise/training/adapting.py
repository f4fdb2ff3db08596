"""`likewise adapt`: from any text to an encoder that is better on that text, or to the base and a plain statement."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from likewise.corpus import CorpusError, CorpusOptions
from likewise.corpus.passages import OfferedPair, Passage, offered_pairs, read_passages
from likewise.encoder.opening import LoadError
from likewise.encoder.word_part import fit_word_part
from likewise.errors import LikewiseError, counted
from likewise.inference.encoding import encode
from likewise.inference.loading import load
from likewise.inference.tokens import Tokens, UnfitModel
from likewise.runs.job import Job, Resume, check_target, complete_installation, open_job
from likewise.runs.options import OptionError, checked_seed
from likewise.runs.parts import Parts
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress
from likewise.runs.stopping import orderly_stop
from likewise.training.adapt_choice import Candidate, Judge, StsDev, reciprocal_ranks
from likewise.training.adapt_head import FrozenTexts, Head, HeadOptions, centred, softly_whitened, train_head
from likewise.training.checkpoints import base_fingerprint
from likewise.transformers_output import no_bar

WEIGHTS = (0.3, 0.5, 0.7)
"""Weights of the part of words that are tried."""

PHRASE = 6.0
"""Mean words of a passage below which a text is phrases: a missing word changes these, so nothing is learnt from it."""

_BLOCK = 2048  # texts of a saved part
_HELD_OUT, _DISTRACTORS = 500, 4500
_FEWEST = 50  # held-out sentences below which nothing is measured


@dataclass(frozen=True)
class AdaptResult:
    """The result of `adapt`.

    Attributes:
        path: the model's folder.
        record: the content of likewise.json.
    """

    path: Path
    record: dict[str, Any]

    @property
    def chosen(self) -> str:
        """The name of the candidate that was saved, "base" for the unchanged base."""
        return self.record["chosen"]

    @property
    def reason(self) -> str:
        """The reason for the choice, in one sentence."""
        return self.record["reason"]

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates with their scores, the base first."""
        return tuple(Candidate(**one) for one in self.record["candidates"])

    @cached_property
    def model(self) -> Any:
        """The saved model, loaded on first access."""
        return load(self.path)


@no_bar()  # one bar is enough
def adapt(
    corpus: str | os.PathLike[str] | list[str],
    *,
    base: str | os.PathLike[str] = "bundled:minilm",
    out: str | os.PathLike[str],
    minutes: float = 15.0,
    seed: int = 1,
    data: str | os.PathLike[str] | None = None,
    corpus_options: CorpusOptions | None = None,
    keep_base_if_better: bool = True,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
) -> AdaptResult:
    """Adapt a sentence encoder to a text, without labels.

    The text offers pairs (a title and its text, a sentence and the rest of its passage, neighbours). Candidates are made
    from the base: its mean taken off, soft whitening, a part of the corpus's words, and a head trained on the pairs with
    hard negatives. The one that finds the passages of held-out sentences best is saved; STS-B dev, where it is found,
    may not fall by more than a point. Where nothing beats the base by more than the noise, the base itself is saved.

    Args:
        corpus: a file, a folder, a glob, `bundled:wiki-sample`, or a list of these.
        base: a Hugging Face name, a folder, or `bundled:minilm`.
        out: the folder that becomes the model.
        minutes: time to spend, about; a larger corpus than fits is sampled.
        seed: fixes pairs, batches and random vectors.
        data: the folder of SentEval's data, for STS-B dev.
        corpus_options: how the corpus is read.
        keep_base_if_better: save the base where no candidate beats it; otherwise the best candidate is saved.
        resume: True insists on stopped work.
        overwrite: replace the model in `out` once the new one is whole, and throw stopped work away.
        quiet: print nothing.

    Returns:
        The folder of the model and its record, with all candidates and the reason for the choice.

    Raises:
        LikewiseError: the input is wrong; the message names the cure.
        Stopped: it was interrupted; the same call resumes it.
    """
    progress = Progress(quiet)
    if not minutes > 0:
        raise OptionError(f"minutes is {minutes}: give a number above 0")
    checked_seed(seed)
    check_target(out)
    base = os.fspath(base)
    before = complete_installation(out)
    fingerprint = base_fingerprint(base)
    if before and Path(base).expanduser().resolve() == Path(out).resolve():
        fingerprint = before["plan"]["inputs"].get("base")
    encoder = load(base)
    texts = _Texts(encoder, base)
    passages = read_passages(corpus, corpus_options, seed=seed)
    progress.tell(f"{counted(len(passages), 'passage')}, {_words(passages):.1f} words each")
    digest = blake2b("\n".join(f"{one.title}\t{one.text}" for one in passages).encode("utf-8", "replace"), digest_size=16)
    sts = StsDev.find(data)
    options = {"base": base, "minutes": minutes, "seed": seed, "keep_base_if_better": keep_base_if_better}
    inputs = {"base": fingerprint, "corpus": digest.hexdigest(), "STS-B dev": sts is not None}
    with open_job(out, Plan("adapt", options, inputs), resume=resume, overwrite=overwrite) as job:
        if job.finished is None:
            work = _Adapting(job, texts, passages, sts, minutes, seed, progress)
            work.run(keep_base_if_better)
        assert job.finished is not None
        return AdaptResult(job.target, job.finished)


def _words(passages: Sequence[Passage]) -> float:
    return float(np.mean([len(one.text.split()) for one in passages]))


class _Texts:
    """The base as a function of texts: vectors, and the pieces that the part of words counts."""

    def __init__(self, encoder: SentenceTransformer, base: str) -> None:
        try:
            self.tokens = Tokens(encoder)
        except UnfitModel as reason:
            raise LoadError(f"--base {base} cannot be adapted: {reason}. Give another base") from None
        self.encoder = encoder

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of the base, (S, D) float32, each of length 1."""
        return encode(self.encoder, texts, precision="fp32", normalize=True)

    @property
    def embeddings(self) -> np.ndarray:
        """The input embeddings of the base, (V, E); (V, 1) zeros where it has none to share."""
        try:
            found = self.encoder[0].auto_model.get_input_embeddings().weight.detach().float().cpu().numpy()
        except (AttributeError, NotImplementedError):
            return np.zeros((len(self.encoder.tokenizer), 1), dtype=np.float32)
        return found


class _Adapting:
    """The stages of one job."""

    def __init__(
        self,
        job: Job,
        base: _Texts,
        passages: Sequence[Passage],
        sts: StsDev | None,
        minutes: float,
        seed: int,
        progress: Progress,
    ) -> None:
        self.job, self.base, self.sts, self.seed, self.progress = job, base, sts, seed, progress
        self.seconds = 60 * minutes
        self.all_passages = passages
        self.judge = Judge(None, None)
        self.candidates: list[Candidate] = []
        self.heads: dict[str, Head] = {}

    def run(self, keep_base_if_better: bool) -> None:
        passages = self._sample()
        pairs = offered_pairs(passages, seed=self.seed)
        held, training = _split(pairs, passages, self.seed)
        self.phrases = _words(passages) < PHRASE
        texts, place = self._encode(pairs)
        self.texts, self.place, self.held = texts, place, held
        shown = [place[pair.second] for pair in pairs]
        self.pool = np.array(list(dict.fromkeys([place[pair.second] for pair in held] + shown)))[
            : len(held) + _DISTRACTORS
        ]
        self._score("base", Head.identity(texts.vectors.shape[1]))
        rows = np.array([[place[pair.first], place[pair.second]] for pair in training]).reshape(-1, 2)
        self._try_all(rows)
        chosen, reason = self._choose(keep_base_if_better)
        self._save(chosen, reason, passages, pairs)

    def _sample(self) -> list[Passage]:
        """Return the passages that fit the time, measured once on a few of them."""
        rng = np.random.default_rng([self.seed, 3])
        order = rng.permutation(len(self.all_passages))
        if "passages" not in self.job.notes:
            probe = [self.all_passages[int(i)].text for i in order[:256]]
            self.base.vectors(probe[:32])  # the first call is slower
            begun = time.perf_counter()
            self.base.vectors(probe)
            pace = (time.perf_counter() - begun) / len(probe)
            # Both sides of a pair, in half of the time.
            self.job.note(passages=int(max(256, 0.5 * self.seconds / (2 * pace))))
        most = self.job.notes["passages"]
        if most < len(self.all_passages):
            self.progress.tell(f"{most:,} of {len(self.all_passages):,} passages are used: what fits the time given")
        return [self.all_passages[int(i)] for i in np.sort(order[:most])]

    def _encode(self, pairs: Sequence[OfferedPair]) -> tuple[FrozenTexts, dict[str, int]]:
        """Return all texts under the base, and the row of each; finished blocks are kept for a resumed run."""
        texts = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
        texts += [text for text in dict.fromkeys(self.sts.texts if self.sts else ()) if text not in set(texts)]
        parts = Parts(self.job.work / "vectors")
        blocks: list[np.ndarray] = []
        with orderly_stop(self.progress) as stop, self.progress.bar("encoding with the base", len(texts)) as bar:
            for start in range(0, len(texts), _BLOCK):
                name = f"{start:09d}.npy"
                if name not in parts:
                    stop.check(f"after {start:,} of {len(texts):,} texts")
                    with parts.new(name) as path, path.open("wb") as file:
                        np.save(file, self.base.vectors(texts[start : start + _BLOCK]))
                blocks.append(np.load(parts.path(name)))
                bar.update(min(start + _BLOCK, len(texts)))
        found = FrozenTexts(torch.from_numpy(np.concatenate(blocks)), self.base.tokens(texts))
        return found, {text: row for row, text in enumerate(texts)}

    def _try_all(self, pairs: np.ndarray) -> None:
        """Make and score the candidates: those that need no training first."""
        vectors = self.texts.vectors.numpy()[np.unique(pairs[:, 1])] if len(pairs) else self.texts.vectors.numpy()
        self._score("mean taken off", centred(vectors))
        if len(vectors) > 4 * vectors.shape[1]:
            self._score("soft whitening", softly_whitened(vectors))
        if self.phrases:
            return
        ids = [self.texts.ids[row] for row in np.unique(pairs[:, 1])]
        size = vectors.shape[1]
        part = fit_word_part(ids, self.base.encoder.tokenizer, self.base.embeddings, size, self.seed)
        for weight in WEIGHTS:
            self._score(f"words {weight}", Head.identity(size, _weighted(part, weight)))
        for what, changes in (("map", {"word_rate": 0.0}), ("map and words", {})):
            options = HeadOptions().updated(**changes)
            start = Head.identity(size, _weighted(part, self._best_weight()))
            trained = train_head(start, self.texts, pairs, options, self.seed, self.progress)
            self._score(f"words {self._best_weight()}, trained {what}", trained)

    def _best_weight(self) -> float:
        """Return the best weight by held-out retrieval; the middle one where nothing is measured."""
        found = {weight: next(one.gain for one in self.candidates if one.name == f"words {weight}") for weight in WEIGHTS}
        return max(WEIGHTS, key=lambda weight: found[weight]) if self.held else WEIGHTS[1]  # type: ignore[arg-type, return-value]

    def _score(self, name: str, head: Head) -> None:
        self.heads[name] = head
        ranks = sts = None
        if self.held:
            queries = head.all(self.texts, np.array([self.place[pair.first] for pair in self.held]))
            ranks = reciprocal_ranks(queries, head.all(self.texts, self.pool), np.arange(len(self.held)))
        if self.sts is not None:
            sts = self.sts.spearman(head.all(self.texts, np.array([self.place[text] for text in self.sts.texts])))
        if not self.candidates:
            self.judge = Judge(ranks, sts)
        self.candidates.append(self.judge.score(name, ranks, sts))
        one = self.candidates[-1]
        scores = [f"MRR {one.mrr:.2f}" if one.mrr is not None else "", f"STS-B dev {sts:.2f}" if sts else ""]
        self.progress.tell(f"{name}: {', '.join(filter(None, scores)) or 'not measured'}")

    def _choose(self, keep_base_if_better: bool) -> tuple[Candidate, str]:
        base, others = self.candidates[0], self.candidates[1:]
        if self.held:
            best, reason = self.judge.best(others)
            if best is None and not keep_base_if_better:
                best = max(others, key=lambda one: one.gain or 0.0)
            return best or base, reason
        if self.phrases:
            return base, (
                "the text is short phrases: it holds no passages to measure on, and a missing word changes a phrase, so "
                "the base is kept"
            )
        name = next(one.name for one in others if one.name.endswith("trained map"))
        kept = [one for one in others if one.name == name and self.judge.keeps_sts(one)]
        if not kept:
            return base, "the text has no passages to measure on, and the candidate loses too much of STS-B dev"
        return kept[0], (
            "the text is single sentences, on which nothing can be measured without labels: this is what paid on "
            "labelled sets of the same kind (see docs/adapt.md)"
        )

    def _save(self, chosen: Candidate, reason: str, passages: Sequence[Passage], pairs: Sequence[OfferedPair]) -> None:
        kinds: dict[str, int] = {}
        for pair in pairs:
            kinds[pair.kind] = kinds.get(pair.kind, 0) + 1
        model = self.heads[chosen.name].on(self.base.encoder) if chosen.name != "base" else self.base.encoder
        facts = {
            "recipe": "adapt",
            "kind": "encoder",
            "base": self.job.plan.options["base"],
            "chosen": chosen.name,
            "reason": reason,
            "candidates": [one.to_dict() for one in self.candidates],
            "corpus": {"passages": len(passages), "pairs": kinds, "held_out": len(self.held)},
        }
        model.save_pretrained(str(self.job.result), create_model_card=False)
        self.job.finish(facts)


def _weighted(part: Any, weight: float) -> Any:
    import copy

    found = copy.deepcopy(part)
    found.weight = weight
    return found


def _split(
    pairs: Sequence[OfferedPair], passages: Sequence[Passage], seed: int
) -> tuple[list[OfferedPair], list[OfferedPair]]:
    """Return held-out pairs to measure on, and those to train on; no passage is in both.

    Sentences with the rest of their passage measure; deletions do not, as any weight on words solves them.
    """
    measuring = [pair for pair in pairs if pair.kind in ("rest", "title", "question")]
    if len({pair.passage for pair in measuring}) < 0.3 * len(passages):
        measuring = []
    rng = np.random.default_rng([seed, 4])
    one_each = list({pair.passage: pair for pair in rng.permutation(np.array(measuring, dtype=object))}.values())
    wanted = min(_HELD_OUT, len(one_each) // 5)
    held = one_each[:wanted] if wanted >= _FEWEST else []
    gone = {pair.passage for pair in held}
    return held, [pair for pair in pairs if pair.passage not in gone]
