"""The stage `harvest` (section 3.4): pairs of the corpus with their Origin similarity, in shards, as training data.

A shard is a Parquet file with the columns sentence1, sentence2, score, kind and split. Shard k belongs to machine
k modulo n + 1 of n. Each of several machines runs a separate job, whose target is a folder of the harvest's:

runs/contexts/harvest/
  part-1-of-2/   shard-000000.parquet, shard-000002.parquet, ..., likewise.json
  part-2-of-2/   shard-000001.parquet, ...

Copied into one folder, the parts are the harvest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from likewise.context.harvest_pairs import PairSource, SentencePair, tfidf
from likewise.context.origin import open_origin, stages_read
from likewise.context.stage_options import HarvestOptions, ScoreOptions, SelectionOptions
from likewise.context.workspace import ContextError
from likewise.runs.job import JobError, Plan, Resume, open_job, read_record, work_of
from likewise.runs.progress import Progress, orderly_stop
from likewise.runs.releases import versions
from likewise.runs.whole_files import Parts, Record, Values

ScoreFunction = Callable[[Sequence[SentencePair]], np.ndarray]
"""Pairs to their similarities (P,)."""


@dataclass(frozen=True)
class HarvestResult:
    """The result of a harvest in the folder `path`, with the record of this machine's job.

    `summary` has the counts of the whole harvest: 'pairs', 'splits' and 'scores' by kind. It is None as long as the
    parts of other machines are missing.
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
        work: Path to the workspace with the stages that the score requires.
        options: Options of the pairs.
        score, selection: See `likewise.context.open_origin`.
        out: Path to the folder of the shards; by default `harvest` in the workspace.
        shard: Share of this machine, as "NUMBER/MACHINES".
        resume, overwrite: See `likewise.runs.job.open_job`.
        quiet: Whether to print nothing.

    Returns:
        The path of the harvest, its record, and a summary of the pairs.

    Raises:
        ContextError: If a stage is missing or stale, or the share is invalid.
        JobError: If the folder contains a harvest of other pairs or scores.
        Stopped: If the harvest is interrupted; the same call resumes it.

    Example:
        >>> import likewise
        >>> from likewise.context import HarvestOptions, IndexOptions, ScoreOptions, build_index, read_states
        >>> index = build_index("runs/contexts", "bundled:wiki-sample", IndexOptions(documents=1), quiet=True)
        >>> states = read_states("runs/contexts", quiet=True)
        >>> score = ScoreOptions(terms=["cosine", "words"])  # others need a discriminator or generators
        >>> few = HarvestOptions(pairs=20, anchors=4, ranks=[1, 4], held_out=0.2)
        >>> result = likewise.harvest("runs/contexts", few, score=score, quiet=True)
        >>> print(*result.summary["splits"])
        train dev test
    """

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
        scoring={
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
        raise ContextError(f"--shard {text}: give NUMBER/MACHINES, for example 1/4")
    return int(match[1]), int(match[2])


def score_shards(
    source: PairSource,
    out: str | Path,
    score: ScoreFunction,
    *,
    progress: Progress,
    scoring: Values | None = None,
    inputs: Mapping[str, str] | None = None,
    machine: tuple[int, int] = (1, 1),
    resume: Resume = "auto",
    overwrite: bool = False,
) -> HarvestResult:
    """Score the pairs of a source, shard by shard; the scores depend on `scoring`, and on the inputs."""
    out, (number, machines) = Path(out), machine
    options = {"harvest": source.options.to_dict(), **(scoring or {}), "machines": machines}
    fingerprints = {**(inputs or {}), "sentences": source.fingerprint}
    plan = Plan("context harvest", options, fingerprints, versions=versions("context"))
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
                            f"{shard_name(k)}: the scores have shape {scores.shape} or are not finite, but one "
                            "finite score per pair is needed"
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
    """Raise a JobError if the folder contains another harvest than the one of this part."""
    if read_record(out) or work_of(out).exists():
        raise JobError(f"{out} contains a harvest of one machine: choose another --out")
    for folder in out.glob("part-*"):
        record = read_record(folder)
        if record and (change := plan.difference(record["plan"])):
            raise JobError(f"{folder} was built with {change}: choose another --out")


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
