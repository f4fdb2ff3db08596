"""Table 5: Wikipedia sections by Origin, by students of contexts, and by the base.

    likewise context index --corpus articles.jsonl.gz --work runs/contexts --set index.documents=595
    likewise context train all --work runs/contexts
    python benchmarks/context/sections.py --work runs/contexts --models "[CLS], profile=runs/teach/-cls-profile-1"

The triplets are those of `wiki-sections`, less those of articles that the workspace holds: neither contexts nor
harvested sentences are of an article of the test. Models are scored on all of them, Origin on --limit, drawn with seed
1 (its row of the cosine is the base on the same ones). Terms that are added have equal weights, each brought to one
deviation over pairs of the workspace's own sentences; no label is used. Features are kept in --out, a file for 500
triplets, and the score of a model too, so that a stopped run goes on.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
import torch
from origin import kept, parser_of
from pretrained import OWN, features, opened

import likewise
from likewise.context.stage_options import FEATURES
from likewise.context.workspace import Workspace
from likewise.corpus.documents import Triplet, read_documents
from likewise.evaluation.tasks.wiki_sections import TASKS, WikiSectionsTask
from likewise.runs.cache import data_folder
from likewise.runs.releases import machine
from likewise.runs.whole_files import read_json, write_json
from rows import ResultFile

ROWS = (
    ("cosine",),
    ("words",),
    ("coherence",),
    ("cosine", "words"),
    ("cosine", "coherence"),
    ("cosine", "words", "coherence"),
)
AT_ONCE = 500


@dataclass(frozen=True)
class Drawn(WikiSectionsTask):
    """The triplets of `wiki-sections` of other articles than those named, and `limit` of them; 0: all."""

    without: frozenset[str] = frozenset()
    limit: int = 0

    def load(self, data: Path) -> list[Triplet]:
        found = [one for one in super().load(data) if one.article not in self.without]
        rows = np.sort(np.random.default_rng(1).permutation(len(found))[: self.limit or None])
        return [found[i] for i in rows]


def tasks(args: argparse.Namespace) -> tuple[Drawn, Drawn]:
    """All triplets of articles that the workspace does not hold, and those that Origin scores."""
    documents = Workspace(args.work).require("index").record["documents"]
    articles = zip(range(documents), read_documents(str(args.articles)), strict=False)
    own, (given, *_) = frozenset(one.title for _, one in articles), TASKS
    assert given.size
    return tuple(  # type: ignore[return-value]
        Drawn(f"{given.name}-{name}", given.title, given.size, given.original, without=own, limit=limit)
        for name, limit in (("all", 0), ("drawn", args.limit))
    )


def measured(args: argparse.Namespace, triplets: list[Triplet]) -> Iterator[np.ndarray]:
    """Yield the features of both pairs of some triplets at a time, (2, R, 7)."""
    wanted = [name in {term for row in ROWS for term in row} for name in FEATURES]
    for begin in range(0, len(triplets), AT_ONCE):
        some = triplets[begin : begin + AT_ONCE]

        def computed(some: list[Triplet] = some) -> tuple[np.ndarray, np.ndarray]:
            pairs = [(t.anchor, t.positive) for t in some] + [(t.anchor, t.negative) for t in some]
            origin = opened(args.work, args.strategy, args.contexts, args.candidates)
            return origin.features(pairs, wanted).reshape(2, len(some), -1), np.zeros(0)

        yield kept(args.out / f"{len(triplets)}-{args.contexts}-{begin}.npz", computed)[0]


def row(name: str, share: float, triplets: int) -> dict[str, Any]:
    """A row: the accuracy in percent, and its standard error."""
    error = (share * (1 - share) / triplets) ** 0.5
    return {"row": name, "accuracy": 100 * share, "error": 100 * error, "triplets": triplets}


def of_model(args: argparse.Namespace, name: str, place: str, task: Drawn) -> dict[str, Any]:
    """The row of a model, computed or read."""
    path = args.out / f"{re.sub('[^a-z0-9.]+', '-', name.lower())}.json"
    if not path.exists():
        (found,) = likewise.evaluate(place, task, data=args.data, precision=args.precision).results
        write_json(path, row(name, found.score / 100, found.n))
    return dict(read_json(path))


def parser() -> argparse.ArgumentParser:
    found: argparse.ArgumentParser = parser_of(__doc__, "runs/sections")
    found.add_argument("--articles", default=data_folder() / "wikipedia/articles.jsonl.gz")
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--models", nargs="*", default=[], metavar="NAME=FOLDER")
    found.add_argument("--table", default="context-tables", help="the result file")
    found.add_argument("--contexts", type=int, default=50, help="contexts of a sentence")
    found.add_argument("--limit", type=int, default=1_500, help="triplets for Origin; 0: all")
    found.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of the models")
    found.add_argument("--terms", nargs="*", default=list(FEATURES[:4]), help=argparse.SUPPRESS)
    return found


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    both = tasks(args)
    triplets = [task.load(args.data) for task in both]
    print(f"machine {machine()}; {len(triplets[0]):,} triplets, {len(triplets[1]):,} drawn")
    rows = [of_model(args, *one.split("=", 1), both[0]) for one in (f"{args.base}={args.base}", *args.models)]
    args.limit = 0  # own text is not drawn
    spread = features(args, OWN)[0].std(axis=0)
    found = np.concatenate(list(measured(args, triplets[1])), axis=1)
    for names in ROWS:
        at = [FEATURES.index(name) for name in names]
        near, far = (found[..., at] / spread[at]).sum(axis=2)
        rows.append(row(f"Origin: {' + '.join(names)}", float((near > far).mean()), len(near)))
    print("| | accuracy | triplets |\n| --- | ---: | ---: |")
    for one in rows:
        print(f"| {one['row']} | {one['accuracy']:.2f} ± {one['error']:.2f} | {one['triplets']:,} |")
    facts = {"part": "sections", "contexts": args.contexts, "precision": args.precision}
    ResultFile(args.table).add(*(facts | one for one in rows))


if __name__ == "__main__":
    main()
