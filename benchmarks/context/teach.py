"""Do contexts teach? Students of the same pairs, rated by context terms alone or by the encoder's cosine alone.

    likewise context index --corpus articles.jsonl.gz --work runs/contexts --set index.documents=595
    likewise context train all --work runs/contexts
    python benchmarks/context/teach.py --work runs/contexts

The pairs are those of a harvest. An arm sees their order by its teacher and nothing else: the ratings of every arm are
the values of the cosine, given out in the order of the arm's own scores, so that arms differ in order and not in scale.
The last checkpoint is taken: no label chooses. `halves agree` keeps the half of the pairs on which the scores over odd
and over even contexts differ least in rank. `profile` learns no pairs: the student's distribution over contexts (cosine
of a sentence with the text around a gap, softmax at 0.05) is brought to the teacher's, by the Kullback-Leibler
divergence: `likewise context distill --preset profiles`. `profile of cosines` is its control: the same, by the base's
own cosine of the sentence and that text, at the same temperature (`--learns cosine-profiles`). --steps 0 is one pass
over the pairs: with --pairs, table 8. --terms are the context terms that teach, all at one scale; those of a language
model take a workspace of --preset pretrained.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np

import likewise
from arms import Arm, as_shipped, parser_of, run
from likewise.context.stage_options import TERMS, HarvestOptions, ScoreOptions, SelectionOptions
from likewise.context.weights import agree

STUDENTS = {"[CLS]": "cls", "mean": "mean"}
PROFILES = {"profile": "profiles", "profile of cosines": "cosine-profiles"}
TEACHERS = ("cosine", "contexts", "halves agree", *PROFILES)


def opened(args: argparse.Namespace) -> Any:
    from likewise.context.origin import open_origin

    chosen = SelectionOptions(size=args.contexts, candidates=2_000)
    return open_origin(args.work, ScoreOptions(weights=(1.0,) * 7), chosen)


def scored(args: argparse.Namespace) -> Any:
    """The pairs with their scores: sentence1, sentence2, split, cosine, contexts, odd and even; kept in --out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from likewise.context.harvest_pairs import PairSource

    path = args.out / f"pairs-{args.pairs}-{'-'.join(args.terms)}.parquet"
    if not path.exists():
        origin = opened(args)
        options = HarvestOptions(pairs=args.pairs, anchors=25)
        source = PairSource(origin.states.store.texts(), options, origin.states.vectors)
        wanted = [term in args.terms for term in TERMS]
        tables, features = [], []
        for number in range(source.shards):
            table = source.shard(number)
            pairs = list(zip(*(table[name].to_pylist() for name in ("sentence1", "sentence2")), strict=True))
            cosine = origin.features(pairs, [True] + [False] * 6)[:, 0]
            found = origin.terms(pairs, wanted)
            rows = [
                [agree(*part[:, at]) for part in found] for at in (slice(None), slice(0, None, 2), slice(1, None, 2))
            ]
            tables.append(table.append_column("cosine", pa.array(cosine)))
            features.append(np.array(rows))  # (3, P, 4)
            print(f"{number + 1} of {source.shards} shards", flush=True)
        every = np.concatenate(features, axis=1)[:, :, wanted]
        sums = (every / every[0].std(axis=0)).sum(axis=2)  # terms at one scale
        whole = pa.concat_tables(tables)
        for name, values in zip(("contexts", "odd", "even"), sums, strict=True):
            whole = whole.append_column(name, pa.array(values))
        pq.write_table(whole, path)
    return pq.read_table(path)


def ranks(values: np.ndarray) -> np.ndarray:
    return values.argsort(kind="stable").argsort(kind="stable")


def harvest_of(teacher: str, args: argparse.Namespace, folder: Path) -> Path:
    """Write the pairs as a harvest, with the ratings of a teacher."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = scored(args)
    columns = {name: table[name].to_numpy() for name in ("cosine", "contexts", "odd", "even")}
    rows = np.arange(len(table))
    if teacher == "halves agree":
        rows = np.sort(
            np.argsort(np.abs(ranks(columns["odd"]) - ranks(columns["even"])), kind="stable")[: len(rows) // 2]
        )
    order = columns["cosine" if teacher == "cosine" else "contexts"][rows]
    ratings = np.sort(columns["cosine"][rows])[ranks(order)]
    kept = table.take(rows).select(["sentence1", "sentence2", "split"]).append_column("score", pa.array(ratings))
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(kept, folder / "shard-000000.parquet")
    return folder


def student_of(student: str, args: argparse.Namespace, out: Path, **given: Any) -> Any:
    """The result of `context distill` for a student, over what it learns from."""
    shared = {"base": args.base, "seed": args.seed, "data": args.data, "overwrite": True, "quiet": True}
    return likewise.distill(out=out, pooling=STUDENTS[student], **shared, **given)


def from_pairs(student: str, teacher: str) -> Any:
    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        harvest = harvest_of(teacher, args, out.with_name(out.name + "-harvest"))
        options = {"preset": "cpu", "scale": "cosine", "select_by": "last", "max_steps": args.steps}
        result = student_of(student, args, out, harvest=harvest, **options)
        return {"options": result.record["options"], "pairs": result.record["corpus"]["sentences"]}

    return make


def from_profiles(student: str, teacher: str) -> Any:
    """The student's distribution over contexts is brought to the discriminator's, or to that of the base's cosines."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        options = {"preset": "profiles", "learns": PROFILES[teacher]}
        options |= {"max_steps": args.steps} if args.steps else {}
        result = student_of(student, args, out, work=args.work, **options)
        return {"options": result.record["options"]}

    return make


def untrained(student: str) -> Any:
    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        from likewise.encoder.build import build_encoder

        return {"model": build_encoder(args.base, pooling=STUDENTS[student], head=False).eval()}

    return make


ARMS = {"all-MiniLM-L6-v2": Arm(as_shipped, seeds=False)}
for name in STUDENTS:
    ARMS[f"{name}, untrained"] = Arm(untrained(name), seeds=False)
    for one in TEACHERS:
        ARMS[f"{name}, {one}"] = Arm((from_profiles if one in PROFILES else from_pairs)(name, one))


def parser() -> argparse.ArgumentParser:
    found = parser_of(ARMS, __doc__, out=Path("runs/teach"), table="context-teach", steps=160, corpus="the workspace")
    found.add_argument("--work", type=Path, default=Path("runs/contexts"))
    found.add_argument("--pairs", type=int, default=5_000)
    found.add_argument("--contexts", type=int, default=50, help="contexts of a sentence")
    found.add_argument("--terms", nargs="+", choices=TERMS, default=["coherence"])
    return found


if __name__ == "__main__":
    chosen = parser().parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    if any(not arm.endswith(tuple(PROFILES)) for arm in chosen.arms):
        scored(chosen)  # once for all runs
    run(ARMS, chosen)
