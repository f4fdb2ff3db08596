"""The stage `harvest` (section 3.4): pairs of the corpus with their Origin similarity, in shards, as training data.

Each pair, near, far or unrelated, stands in exactly one shard. The sentences of the pool are put into an order drawn by
the seed, and each shard takes its anchors from that order. An anchor is paired

- with the sentences that stand at given ranks (1, 2, 4, ... by default) among those most like it by the frozen encoder,
  or by the word pieces they share: from paraphrases, where there are any, to the same topic;
- with other anchors of its shard drawn at random, which are unrelated as a rule.

So the pairs of a shard depend on pool, options and its number alone: any machine can make any shard, and makes the same
one again after a crash. A partner by rank stands behind its anchor in the order, and random partners share a shard: no
pair is found from both of its sides, and none in two shards.

A shard is a Parquet file with the columns sentence1, sentence2, score, kind and split. Shard k belongs to machine
k modulo n + 1 of n. Each of several machines runs a separate job, whose target is a folder of the harvest's:

runs/contexts/harvest/
  part-1-of-2/   shard-000000.parquet, shard-000002.parquet, ..., likewise.json
  part-2-of-2/   shard-000001.parquet, ...

Copied into one folder, the parts are the harvest. Letters: N sentences of the pool, A anchors of a shard.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.sparse import csr_matrix, issparse

from likewise.context.stage_options import HarvestOptions, Rule, ScoreOptions, SelectionOptions
from likewise.context.workspace import ContextError
from likewise.errors import counted
from likewise.runs.job import JobError, Plan, Resume, open_job, read_record, work_of
from likewise.runs.progress import Progress, orderly_stop
from likewise.runs.whole_files import Parts, Record, Values

SentencePair = tuple[str, str]


class PairSource:
    """The pairs of a harvest, shard by shard.

    Args:
        sentences: of the corpus; equal ones, and those too short or too long, are left out.
        vectors: (S, any) of the sentences, unit length: of the frozen encoder, or `tfidf`.
    """

    def __init__(self, sentences: Sequence[str], options: HarvestOptions, vectors: csr_matrix) -> None:
        self.options = options
        first: dict[str, int] = {}
        for row, sentence in enumerate(sentences):
            if options.min_words <= len(sentence.split()) <= options.max_words:
                first.setdefault(sentence, row)
        self.pool = list(first)
        self.vectors = vectors[list(first.values())]
        if len(self.pool) < options.anchors + max(options.ranks):
            raise ContextError(
                f"{len(self.pool):,} sentences of {options.min_words} to {options.max_words} words are too few for a "
                f"harvest with anchors={options.anchors} and ranks up to {max(options.ranks)}: give more documents"
            )
        self.order = np.random.default_rng([options.seed, 0]).permutation(len(self.pool))
        self.place = np.empty(len(self.pool), dtype=np.int64)
        self.place[self.order] = np.arange(len(self.pool))

    @property
    def shards(self) -> int:
        """The number of shards."""
        anchors = math.ceil(self.options.pairs / (len(self.options.ranks) + self.options.random))
        # The last ones in the order would have nobody behind them.
        anchors = min(anchors, len(self.pool) - max(self.options.ranks))
        return max(1, anchors // self.options.anchors)

    def cosines(self, rows: np.ndarray) -> np.ndarray:
        """Return the cosines of some rows of the pool with all of them: (A, N)."""
        cosines = self.vectors[rows] @ self.vectors.T
        return cosines.toarray() if issparse(cosines) else cosines

    def ranked(self, row: int, cosines: np.ndarray, allowed: np.ndarray, most: int) -> np.ndarray:
        """Return up to `most` allowed rows, most similar first, by the cosines (N,) of a row; none of a cosine of 0."""
        cosines = np.where(allowed, cosines, -np.inf)
        cosines[row] = -np.inf
        k = min(most, len(cosines))
        best = np.argpartition(-cosines, k - 1)[:k]
        best = best[np.lexsort((best, -cosines[best]))]
        return best[np.isfinite(cosines[best]) & (cosines[best] != 0)]

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the pairs, equal for the same pairs."""
        digest = blake2b(repr(self.options).encode(), digest_size=16)
        for sentence in self.pool:
            digest.update(sentence.encode() + b"\n")
        return digest.hexdigest()

    def shard(self, number: int) -> pa.Table:
        """Return the pairs of a shard, none twice: sentence1, sentence2, kind ("random", or as "rank 8") and split."""
        begin = number * self.options.anchors
        anchors = self.order[begin : begin + self.options.anchors]
        kinds: dict[tuple[int, int], str] = {}
        for anchor, cosines in zip(anchors.tolist(), self.cosines(anchors), strict=True):
            ranked = self.ranked(anchor, cosines, self.place > self.place[anchor], max(self.options.ranks)).tolist()
            for rank in self.options.ranks:
                if rank <= len(ranked):
                    kinds[anchor, ranked[rank - 1]] = f"rank {rank}"
        free = [pair for pair in itertools.combinations(anchors.tolist(), 2) if pair not in kinds]
        rng = np.random.default_rng([self.options.seed, 1, number])
        for k in rng.permutation(len(free))[: len(anchors) * self.options.random]:
            kinds[free[k]] = "random"
        first, second = ([self.pool[pair[side]] for pair in kinds] for side in (0, 1))
        splits = list(map(self.split, first, second))
        return pa.table({"sentence1": first, "sentence2": second, "kind": list(kinds.values()), "split": splits})

    def split(self, first: str, second: str) -> str:
        """Return the split of a pair, which depends on its hash alone."""
        text = "\n".join((str(self.options.seed), *sorted((first, second))))
        share = int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / 2**64
        return "dev" if share < self.options.held_out else "test" if share < 2 * self.options.held_out else "train"


def tfidf(ids: np.ndarray, starts: np.ndarray, idf: np.ndarray) -> csr_matrix:
    """Return sparse vectors of unit length of sentences, (1 + ln tf) idf of word pieces: (S, V).

    Args:
        ids, starts: the word pieces of sentence i are ids[starts[i] : starts[i + 1]].
        idf: (V,), by id.
    """
    from sklearn.preprocessing import normalize

    counts = csr_matrix((np.ones(len(ids), np.float32), ids, starts), (len(starts) - 1, len(idf)))
    counts.sum_duplicates()
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    return normalize(counts)


ScoreFunction = Callable[[Sequence[SentencePair]], np.ndarray]
"""Pairs to their similarities (P,)."""


@dataclass(frozen=True)
class HarvestResult:
    """A harvest in the folder `path`, with the record of this machine's job.

    `summary` counts the whole harvest: 'pairs', 'splits' and 'scores' by kind; None while other machines' parts are
    missing.
    """

    path: Path
    record: Record
    summary: Record | None


def harvest(
    work: str | Path,
    options: HarvestOptions | None = None,
    *,
    score: ScoreOptions | None = None,
    selection: SelectionOptions | None = None,
    out: str | Path | None = None,
    shard: str = "1/1",
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
) -> HarvestResult:
    """Score pairs of the sentences of a workspace's index.

    Args:
        work: holds the stages that the score needs.
        options: which pairs.
        score, selection: as in `likewise.context.open_origin`.
        out: the folder of the harvest; `harvest` in the workspace by default.
        shard: the share of this machine, "number/machines".
        resume, overwrite: as in `likewise.runs.job.open_job`.
        quiet: show nothing.

    Raises:
        ContextError: a stage is missing or stale, or there is no such share.
        JobError: the folder holds a harvest of other pairs or scores.
        Stopped: a stop was asked for.
    """
    from likewise.context.origin import open_origin, stages_read

    machine, progress = parse_shard(shard), Progress(quiet)
    origin = open_origin(work, score, selection, progress)
    states, options_of_score = origin.states, origin.options.to_dict()
    # What has no weight is not read, and so does not make the harvest stale.
    stages = {name: origin.workspace.require(name) for name in stages_read(origin.options.weights)}
    if "discriminator" not in stages:
        progress.tell("no context is read: only terms of the encoder alone have a weight")
    progress.tell("reading the sentences of the index")
    vectors = states.vectors if states.vectors.shape[1] else tfidf(states.ids, states.starts, states.idf)

    def scores(pairs: Sequence[SentencePair]) -> np.ndarray:
        # A sentence that is remembered is missing in the batch of the others, and sums of another batch are rounded
        # differently: without it a resumed harvest has the same bytes.
        states.forget()
        return origin(pairs)

    return score_shards(
        PairSource(states.store.texts(), options or HarvestOptions(), vectors),
        out or Path(work) / "harvest",
        scores,
        asked={
            "score": {name: options_of_score[name] for name in ("form", "weights")},
            "selection": origin.selection.to_dict(),
        },
        inputs={name: stage.fingerprint for name, stage in stages.items()},
        machine=machine,
        progress=progress,
        resume=resume,
        overwrite=overwrite,
    )


def parse_shard(text: str) -> tuple[int, int]:
    """Parse a share such as '1/4' into its number and the count of machines.

    >>> parse_shard("2/8")
    (2, 8)
    """
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise ContextError(f"--shard {text}: give it as number/machines, for example 1/4")
    return int(match[1]), int(match[2])


def score_shards(
    source: PairSource,
    out: str | Path,
    score: ScoreFunction,
    *,
    progress: Progress,
    asked: Values | None = None,
    inputs: Mapping[str, str] | None = None,
    machine: tuple[int, int] = (1, 1),
    resume: Resume = "auto",
    overwrite: bool = False,
) -> HarvestResult:
    """Score the pairs of a source, shard by shard; the scores depend on the options `asked`, and on the inputs."""
    out, (number, machines) = Path(out), machine
    options = {"harvest": source.options.to_dict(), **(asked or {}), "machines": machines}
    plan = Plan("context harvest", options, {**(inputs or {}), "sentences": source.fingerprint})
    folders = [out] if machines == 1 else [out / f"part-{n}-of-{machines}" for n in range(1, machines + 1)]
    if machines > 1:
        _check_parts(out, plan)
        out.mkdir(parents=True, exist_ok=True)
    mine = range(number - 1, source.shards, machines)
    folder = folders[number - 1]
    with open_job(folder, plan, resume=resume, overwrite=overwrite) as job, orderly_stop(progress) as stop:
        if not job.finished:
            shards = Parts(job.result)
            todo = [k for k in mine if shard_name(k) not in shards]
            with progress.bar("scoring shards", len(mine), done=len(mine) - len(todo)) as bar:
                for k in todo:
                    pairs = source.shard(k)
                    texts = (pairs[name].to_pylist() for name in ("sentence1", "sentence2"))
                    scores = np.asarray(score(list(zip(*texts, strict=True))), dtype=np.float64)
                    if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
                        raise ContextError(
                            f"{shard_name(k)}: the scorer gave {scores.shape} scores, or some that are not finite"
                        )
                    with shards.new(shard_name(k)) as path:
                        pq.write_table(pairs.add_column(2, "score", pa.array(scores)), path)
                    bar.advance()
                    stop.check(f"after {bar.done} of {len(mine)} shards")
            job.finish(_summary([job.result]))
        record = job.finished or {}
    missing = [folder for folder in folders if not read_record(folder)]
    return HarvestResult(out, record, None if missing else _summary(folders))


def shard_name(number: int) -> str:
    """Return the file name of a shard."""
    return f"shard-{number:06d}.parquet"


def _check_parts(out: Path, plan: Plan) -> None:
    """Raise a JobError if the folder holds another harvest than the one of this part."""
    if read_record(out) or work_of(out).exists():
        raise JobError(f"{out} holds a harvest of one machine: choose another --out")
    for folder in out.glob("part-*"):
        record = read_record(folder)
        if record and (change := plan.difference(record["plan"])):
            raise JobError(f"{folder} was made with {change}: choose another --out")


def _summary(folders: Sequence[Path]) -> Record:
    """Count the pairs of finished parts by split, and describe the scores of each kind."""
    paths = sorted((path for folder in folders for path in folder.glob("shard-*.parquet")), key=lambda path: path.name)
    table = pa.concat_tables(pq.read_table(path, columns=["score", "kind", "split"]) for path in paths)
    kinds, scores, splits = (table[name].to_numpy() for name in ("kind", "score", "split"))
    spread = {}
    for kind in sorted(set(kinds), key=lambda kind: (len(kind), kind)):  # rank 2 before rank 16
        values = scores[kinds == kind]
        low, middle, high = (float(q) for q in np.quantile(values, [0.05, 0.5, 0.95]))
        spread[kind] = {"pairs": len(values), "mean": float(values.mean()), "5%": low, "50%": middle, "95%": high}
    counts = {name: int((splits == name).sum()) for name in ("train", "dev", "test")}
    return {"pairs": len(table), "splits": counts, "scores": spread}


SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class ScoredPairs:
    """The pairs of one split: `table` has the columns sentence1, sentence2 and score."""

    table: pa.Table

    def __len__(self) -> int:
        return len(self.table)

    @property
    def scores(self) -> np.ndarray:
        """The scores, (P,) float64."""
        return self.table["score"].to_numpy()

    def texts(self) -> tuple[list[str], list[str]]:
        """Return the first and the second sentences."""
        return self.table["sentence1"].to_pylist(), self.table["sentence2"].to_pylist()

    def sample(self, most: int) -> ScoredPairs:
        """Return `most` pairs, always the same ones and in their order, or all if there are fewer."""
        rows = np.sort(np.random.default_rng(0).permutation(len(self))[:most])
        return ScoredPairs(self.table.take(rows))


@dataclass(frozen=True)
class Harvest:
    """A harvest in memory: its splits by name, and its files with their SHA-256."""

    splits: dict[str, ScoredPairs]
    sources: tuple[str, ...]
    sha256: str

    def __str__(self) -> str:
        counts = ", ".join(f"{len(pairs):,} {name}" for name, pairs in self.splits.items())
        return (
            f"{counted(sum(map(len, self.splits.values())), 'scored pair')} in {counted(len(self.sources), 'shard')} "
            f"({counts})"
        )

    def record(self) -> Record:
        """Return the facts for the record of a run."""
        return {
            "sources": list(self.sources),
            "sentences": len(self.splits["train"]),
            "unit": "harvested pairs",
            "sha256": self.sha256,
            "splits": {name: len(pairs) for name, pairs in self.splits.items()},
        }


def read_harvest(folder: str | os.PathLike[str]) -> Harvest:
    """Read all shards of a harvest, including the parts of several machines.

    The folder holds *.parquet, itself or in its folders, with the columns sentence1 and sentence2 (strings), score (a
    number) and split ("train", "dev" or "test"). Hidden files and names that begin with an underscore are ignored.
    """
    path = Path(folder).expanduser()
    parquet_files = (file.relative_to(path) for file in path.rglob("*.parquet"))
    names = sorted(
        (file for file in parquet_files if not any(part[0] in "._" for part in file.parts)), key=lambda file: file.name
    )
    if not names:
        there = "it holds no *.parquet" if path.is_dir() else "there is no such folder"
        raise ContextError(f"{folder}: {there}; give the folder that `likewise context harvest` wrote")
    for shard, other in itertools.pairwise(names):
        if shard.name == other.name:
            raise ContextError(f"{folder} holds {shard} and {other}, which are the same shard: remove one of the parts")
    files = [path / name for name in names]
    whole = pa.concat_tables([_shard(file) for file in files])
    splits = {name: ScoredPairs(whole.filter(pc.equal(whole["split"], name)).drop_columns("split")) for name in SPLITS}
    if not len(splits["train"]):
        raise ContextError(f"{folder}: {counted(len(whole), 'pair')}, and none of them has split 'train': harvest more")
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return Harvest(splits, tuple(str(file) for file in files), digest.hexdigest())


def _shard(file: Path) -> pa.Table:
    """Read and check one shard."""
    again = "make the harvest again with `likewise context harvest --overwrite`"
    kinds = {"sentence1": pa.string(), "sentence2": pa.string(), "score": pa.float64(), "split": pa.string()}
    try:
        parquet = pq.ParquetFile(file)
        names = parquet.schema_arrow.names
        if missing := [name for name in kinds if name not in names]:
            raise ContextError(f"{file} has no column {', '.join(missing)}, only {', '.join(names)}; {again}")
        table = parquet.read(columns=list(kinds))
    except (pa.ArrowException, OSError) as error:
        raise ContextError(f"{file}: cannot be read as Parquet ({error}); {again}") from None
    columns = []
    for name, kind in kinds.items():
        try:
            column = table[name].cast(kind)
        except pa.ArrowException as error:
            raise ContextError(f"{file}: column {name} is {table[name].type}, not {kind} ({error}); {again}") from None
        good = pc.is_valid(column)
        if name == "score":
            good = pc.and_(good, pc.is_finite(column).fill_null(False))
        elif name == "split":
            good = pc.and_(good, pc.is_in(column, pa.array(SPLITS)))
        if not pc.all(good).as_py():
            row = pc.index(good, False).as_py()
            raise ContextError(f"{file}, row {row + 1}: {name} is {column[row].as_py()!r}; {again}")
        columns.append(column)
    return pa.table(columns, names=list(kinds))


@dataclass(frozen=True)
class ScoreScale:
    """A linear map from scores to targets, which keeps the order of pairs.

    * cosine, the paper's: Origin's similarity is itself a cosine (equation 4) and is the target itself.
    * stretch, ours: the score that 1% of the training pairs lie below becomes 0 (`low`), the one that 99% lie below
      becomes 1 (`high`), and targets are cut at -1 and 1. Origin's vectors hold log probabilities, which all have one
      sign: their cosines crowd below 1, and an encoder trained towards them would give all sentences one vector.
    * base, ours: the line on which the scores are nearest to the cosines of the base, by least squares. What then
      differs from the base is what the scores add to it, and a base that agreed with them would not be moved.
    """

    rule: Rule
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def fit(cls, rule: Rule, scores: np.ndarray, cosines: np.ndarray | None = None) -> ScoreScale:
        """Fit the scale of a harvest to the scores (P,) of its training pairs.

        Args:
            cosines: (P,) of the base for the same pairs, for the rule "base".
        """
        if rule == "cosine":
            least, most = float(scores.min()), float(scores.max())
            if least < -1.000001 or most > 1.000001:
                raise ContextError(
                    f"the harvested scores run from {least:.4g} to {most:.4g}, and a cosine runs from -1 to 1: take "
                    "scale=stretch"
                )
            return cls(rule)
        if rule == "base":
            assert cosines is not None
            if scores.std() < 1e-9 or (slope := float(np.polyfit(scores, cosines, 1)[0])) < 1e-6:
                raise ContextError(
                    "the harvested scores do not rise with the cosines of the base, so that no line maps one to the "
                    "other: take scale=stretch"
                )
            low = float(scores.mean()) - float(cosines.mean()) / slope
            return cls(rule, low, low + 1 / slope)
        low, high = (float(value) for value in np.quantile(scores, (0.01, 0.99)))
        if high - low < 1e-9:
            raise ContextError(f"98% of the harvested scores are {low:.6g}: there is nothing to learn from them")
        return cls(rule, low, high)

    def to_target(self, scores: np.ndarray) -> np.ndarray:
        """Return the targets (P,) of scores (P,), from -1 to 1."""
        return np.clip((np.asarray(scores, dtype=np.float64) - self.low) / (self.high - self.low), -1.0, 1.0)

    def from_target(self, targets: np.ndarray) -> np.ndarray:
        """Return the scores (P,) of cosines (P,)."""
        return self.low + np.asarray(targets, dtype=np.float64) * (self.high - self.low)
