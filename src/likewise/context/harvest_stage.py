"""A harvest (section 3.4): pairs of the corpus with their Origin similarity, written as shards.

A shard is a Parquet file with the columns sentence1, sentence2, score, kind and split. Shard k belongs to machine
k modulo n + 1 of n. Each of several machines runs a separate job, whose target is a folder of the harvest's:

runs/contexts/harvest/
  part-1-of-2/   shard-000000.parquet, shard-000002.parquet, ..., likewise.json
  part-2-of-2/   shard-000001.parquet, ...

Copied into one folder, the parts are the harvest.
"""

from __future__ import annotations

import pickle
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.context.harvest_pairs import PairSource, SentencePair, tfidf
from likewise.context.stage_options import HarvestOptions, ScoreOptions, SelectionOptions
from likewise.context.workspace import ContextError, Workspace
from likewise.runs.job import JobError, Resume, open_job, read_record, work_of
from likewise.runs.on_ray import RayExecutor, cluster
from likewise.runs.orderly_stop import orderly_stop
from likewise.runs.overlap import in_order
from likewise.runs.parts import Parts
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

ScoreFunction = Callable[[Sequence[SentencePair]], np.ndarray]
"""Pairs to their similarities (P,)."""


@dataclass(frozen=True)
class HarvestResult:
    """A harvest in the folder `path`, with the record of this machine's job.

    `summary` counts the whole harvest: 'pairs', 'splits' and 'scores' by kind; None while other machines' parts are
    missing.
    """

    path: Path
    record: dict[str, Any]
    summary: dict[str, Any] | None


def harvest(
    work: str | Path,
    options: HarvestOptions | None = None,
    *,
    score: ScoreOptions | None = None,
    selection: SelectionOptions | None = None,
    out: str | Path | None = None,
    shard: str = "1/1",
    on: str | None = None,
    workers: int | None = None,
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
        on: let a Ray cluster score: "ray", or its address as ray://head:10001. The workspace lies in a folder that all
            its machines see.
        workers: of the cluster; one on each core by default.
        resume, overwrite: as in `likewise.runs.job.open_job`.
        quiet: show nothing.

    Raises:
        ContextError: a stage is missing or stale, or there is no such share.
        JobError: the folder holds a harvest of other pairs or scores.
        ClusterError: the cluster cannot be used.
        Stopped: a stop was asked for.
    """
    from likewise.context.origin import stages_read, with_weights
    from likewise.context.states import States

    work, workspace, progress = Path(work).resolve() if on else Path(work), Workspace(work), Progress(quiet)
    machine, options = parse_shard(shard), options or HarvestOptions()
    selection, states = selection or SelectionOptions(), States(workspace)
    score = with_weights(work, states, score or ScoreOptions(), selection, progress)
    # What has no weight is not read, and so does not make the harvest stale.
    stages = {name: workspace.require(name) for name in stages_read(score.weights)}
    progress.tell("reading the sentences of the index")
    vectors = states.vectors if states.vectors.shape[1] else tfidf(states.ids, states.starts, states.idf)
    return score_shards(
        PairSource(states.store.texts(), options, vectors),
        out or work / "harvest",
        partial(_open_scorer, work, score, selection),
        asked={
            "score": {name: score.to_dict()[name] for name in ("form", "weights")},
            "selection": selection.to_dict(),
        },
        inputs={name: stage.fingerprint for name, stage in stages.items()},
        machine=machine,
        on=on,
        workers=workers,
        progress=progress,
        resume=resume,
        overwrite=overwrite,
    )


def _open_scorer(work: Path, score: ScoreOptions, selection: SelectionOptions) -> ScoreFunction:
    """Return a scorer whose scores do not depend on the shards before: a resumed harvest has the same bytes."""
    from likewise.context.origin import open_origin

    origin = open_origin(work, score, selection)

    def scores(pairs: Sequence[SentencePair]) -> np.ndarray:
        origin.forget()
        return origin(pairs)

    return scores


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
    make_scorer: Callable[[], ScoreFunction],
    *,
    progress: Progress,
    asked: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str] | None = None,
    machine: tuple[int, int] = (1, 1),
    on: str | None = None,
    workers: int | None = None,
    resume: Resume = "auto",
    overwrite: bool = False,
) -> HarvestResult:
    """Score the pairs of a source, shard by shard.

    Args:
        make_scorer: called once in each process; on Ray, a function that can be pickled.
        asked, inputs: options and fingerprints that the scores depend on, for the plan.
        machine: number and count of the machines that share the work.
        on, workers: as in `harvest`.
    """
    out, (number, machines) = Path(out), machine
    options = {"harvest": source.options.to_dict(), **(asked or {}), "machines": machines}
    plan = Plan("context harvest", options, {**(inputs or {}), "sentences": source.fingerprint})
    folders = [out] if machines == 1 else [out / f"part-{n}-of-{machines}" for n in range(1, machines + 1)]
    if machines > 1:
        _check_parts(out, plan)
        out.mkdir(parents=True, exist_ok=True)
    mine = range(number - 1, source.shards, machines)
    with ExitStack() as stack:
        on_ray = stack.enter_context(cluster(on, workers))
        job = stack.enter_context(open_job(folders[number - 1], plan, resume=resume, overwrite=overwrite))
        stop = stack.enter_context(orderly_stop(progress))
        if not job.finished:
            shards = Parts(job.result)
            todo = [k for k in mine if shard_name(k) not in shards]
            begun, pairs = time.monotonic(), 0
            with progress.bar("scoring shards", len(mine), done=len(mine) - len(todo)) as bar:
                for k, drawn, scores in _scored(source, todo, make_scorer, on_ray):
                    with shards.new(shard_name(k)) as path:
                        _write(path, drawn, scores)
                    pairs += len(drawn)
                    bar.advance()
                    bar.update(note=f"{60 * pairs / (time.monotonic() - begun):,.0f} pairs a minute")
                    stop.check(f"after {bar.done} of {len(mine)} shards")
            job.finish(_summary([job.result]))
        record = job.finished or {}
    missing = [folder for folder in folders if not read_record(folder)]
    return HarvestResult(out, record, None if missing else _summary(folders))


def _scored(
    source: PairSource, todo: Sequence[int], make_scorer: Callable[[], ScoreFunction], workers: int
) -> Iterator[tuple[int, pa.Table, np.ndarray]]:
    """Yield each shard with its scores, in their order, by this process or by the workers of a Ray cluster."""
    if not todo:
        return iter(())
    if workers:
        score: Any = partial(RayExecutor().submit, _score, pickle.dumps(make_scorer))
    else:
        scorer = make_scorer()

    def begin(number: int) -> Callable[[], tuple[int, pa.Table, np.ndarray]]:
        pairs = source.shard(number)
        texts = list(zip(*(pairs[name].to_pylist() for name in ("sentence1", "sentence2")), strict=True))
        scores = score(texts).result if workers else partial(scorer, texts)
        return lambda: (number, pairs, scores())

    # One shard ahead for each worker: the pairs of all would fill the memory.
    return in_order(map(begin, todo), 2 * workers)


@lru_cache(maxsize=1)
def _scorer(make_scorer: bytes) -> ScoreFunction:
    """Return the scorer of a worker, which keeps it."""
    made: ScoreFunction = pickle.loads(make_scorer)()
    return made


def _score(make_scorer: bytes, pairs: list[SentencePair]) -> np.ndarray:
    return _scorer(make_scorer)(pairs)


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


def _summary(folders: Sequence[Path]) -> dict[str, Any]:
    """Count the pairs of finished parts by split, and describe the scores of each kind."""
    import pyarrow as pa
    import pyarrow.parquet as pq

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


def _write(path: Path, pairs: pa.Table, scores: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
        raise ContextError(f"{path.name}: the scorer gave {scores.shape} scores, or some that are not finite")
    pq.write_table(pairs.add_column(2, "score", pa.array(scores)), path)
