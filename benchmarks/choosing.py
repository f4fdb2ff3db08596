"""How far may a choice without labels be trusted? The queries of `likewise choose` beside people's, on four sets.

    python benchmarks/choosing.py

Systems are BM25 and, for each base, its vectors alone, with BM25 by several weights, and with neighbours. Each is
scored by the labels of the set's dev part (nDCG@10; 300 queries at most), and without labels by queries that are taken
out of the documents, in several ways:

- `whole`: sentences and titles as they stand;
- `telltale`: without the words that only their own passage has;
- `half`: also without half of the other words in common with it, drawn at random;
- `none`: without any of them.

Everything is scored exhaustively, so that no index stands between a weight and its figure; tokens are left out.
Printed are, for each way, Kendall's tau between the two orders of all systems, and the regret: the labelled nDCG@10 of
the best system less that of the one which is best without labels; then the regret of the rule of `likewise choose` over
its own rows. The bases are the bundled MiniLM, the same with the mean of the documents taken off, its first 64
dimensions, and GloVe's average; `mpnet` is there to be asked for.
Vectors are kept in --vectors, scores in the result file.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

import likewise
from domains import Bm25, Encoded, standard
from likewise.choice.held_out import Excerpt, HeldOut
from likewise.choice.result import System, compared, decided
from likewise.choice.trial import discounted
from likewise.corpus.downloads import data_folder
from likewise.retrieval.pipeline import WITHOUT_TOKENS, Pipeline
from rows import ResultFile
from searching import JUDGED, Judged, collection

SHARES = {"whole": None, "telltale": 0.0, "half": 0.5, "none": 1.0}
QUERIES = 300
DEFAULT = WITHOUT_TOKENS
BM25 = "BM25"


def nearest(vectors: np.ndarray, count: int) -> np.ndarray:
    """Return the nearest passages of each (N, K), the nearest first, by vectors (N, D) of length 1.

    K is `count`, or one less than N if that is fewer.

    >>> nearest(np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]), 1).tolist()
    [[1], [2], [1]]
    """
    count = min(count, len(vectors) - 1)
    found = np.empty((len(vectors), count), dtype=np.int64)
    for start in range(0, len(vectors), 1024):
        cosines = vectors[start : start + 1024] @ vectors.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -np.inf
        near = np.argpartition(-cosines, count - 1, axis=1)[:, :count] if count else rows[:, None][:, :0]
        order = np.argsort(-np.take_along_axis(cosines, near, axis=1), axis=1, kind="stable")
        found[start : start + 1024] = np.take_along_axis(near, order, axis=1)
    return found


def ways() -> dict[str, Pipeline]:
    """Pipelines by name; those of choose's rows first."""
    plain = {"neighbours": 0, "excluded": 0, "tokens": 0}
    found = {
        BM25: Pipeline(vectors=0, words=1, **plain),
        "alone": Pipeline(vectors=1, words=0, **plain),
        "+ BM25": Pipeline(vectors=0.5, words=0.5, **plain),
        "pipeline": DEFAULT,
    }
    for share in (0.2, 0.3, 0.6, 0.7, 0.8):
        found[f"vectors {share}"] = Pipeline(vectors=share, words=1 - share, **plain)
    found["neighbours 0.3"] = Pipeline(**(plain | {"neighbours": 0.3}))
    return found


def ndcg(scores: np.ndarray, grades: dict[int, int], depth: int = 10) -> float:
    """nDCG@10 times 100 of the scores (N,) of one query."""
    discounts = 1 / np.log2(np.arange(2, depth + 2))
    top = np.argsort(-scores, kind="stable")[:depth]
    ideal = np.sort(np.array([*grades.values()], dtype=float))[::-1][:depth]
    gain = (np.array([grades.get(int(i), 0) for i in top]) * discounts[: len(top)]).sum()
    return 100 * float(gain / (ideal * discounts[: len(ideal)]).sum())


def glove(folder: Path) -> str:
    if not (folder / "modules.json").exists():
        likewise.baseline("word-average", out=folder, quiet=True)
    return str(folder)


BASES = {
    "MiniLM": ("bundled:minilm", None),
    "MiniLM, centred": ("bundled:minilm", 0),
    "MiniLM, 64 dimensions": ("bundled:minilm", 64),
    "GloVe": ("glove", None),
    "mpnet": ("bundled:mpnet", None),
}
"""A model, and what is done to its vectors: the mean taken off (0), or only the first dimensions kept."""


class Space:
    """Passages and queries under one base: cosines, BM25 scores and neighbours."""

    def __init__(self, passages: Sequence[str], queries: Sequence[str], encode: Encoded, first: int | None) -> None:
        vectors = encode([*passages, *queries]).astype(np.float32)
        vectors = vectors - vectors[: len(passages)].mean(axis=0) if first == 0 else vectors[:, :first]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-12
        of_passages, asked = vectors[: len(passages)], vectors[len(passages) :]
        self.cosines = standard(asked @ of_passages.T)
        self.words = standard(Bm25(list(queries), list(passages), list(passages)).rows(slice(None)))
        self.near = nearest(of_passages, DEFAULT.nearest)

    def scores(self, one: Pipeline) -> np.ndarray:
        """(Q, N)."""
        own = one.vectors * self.cosines + one.words * self.words
        return (1 - one.neighbours) * own + one.neighbours * own[:, self.near].mean(axis=2) if one.neighbours else own


def excerpts(judged: Judged, most: int) -> list[Excerpt]:
    """Documents, each whole; of more than `most` an even share."""
    every = [Excerpt(name, text) for name, text in judged.documents.items()]
    return every[:: max(1, -(-len(every) // most))]


def by_labels(space: Space, names: Sequence[str], judged: Judged, queries: Sequence[str]) -> dict[str, list[float]]:
    place = {one: i for i, one in enumerate(names)}
    found = {}
    for way, one in ways().items():
        found[way] = [
            ndcg(row, {place[name]: grade for name, grade in judged.grades[query].items() if name in place})
            for query, row in zip(queries, space.scores(one), strict=True)
        ]
    return found


def without_labels(space: Space, held: HeldOut) -> dict[str, list[float]]:
    place = {one.id: i for i, one in enumerate(held.passages)}
    own = [[place[name] for name in sorted(one.own)] for one in held.queries]
    found = {}
    for way, one in ways().items():
        scores = space.scores(one)
        ranks = [(row > row[mine].max()).sum() for row, mine in zip(scores, own, strict=True)]
        found[way] = [discounted(int(rank)) for rank in ranks]
    return found


def score(name: str, options: argparse.Namespace, results: ResultFile) -> None:
    judged = collection(options.data, name, "dev")
    queries = list(judged.queries)[:QUERIES]
    encoders: dict[str, Encoded] = {}
    for base in options.bases:
        model, first = BASES[base]
        model = glove(options.vectors / "glove") if model == "glove" else model
        encode = encoders.setdefault(model, Encoded(model, options.vectors))
        encode([*judged.documents.values(), *judged.queries.values()])  # as domains.py does, whose vectors are kept
        for by in ["labels", *(f"{variant}, {seed}" for seed in options.seeds for variant in SHARES)]:
            if results.has(set=name, base=base, by=by):
                continue
            if by == "labels":
                every = excerpts(judged, 10**9)
                space = Space([one.searched for one in every], [judged.queries[one] for one in queries], encode, first)
                found, kinds = by_labels(space, [one.id for one in every], judged, queries), []
            else:
                variant, _, seed = by.partition(", ")
                some = excerpts(judged, options.passages)
                held = HeldOut.of(some, int(seed), most=options.queries, shared=SHARES[variant])
                space = Space(
                    [one.searched for one in held.passages], [one.text for one in held.queries], encode, first
                )
                found, kinds = without_labels(space, held), [one.kind for one in held.queries]
            rows = {way: [round(one, 2) for one in each] for way, each in found.items()}
            results.add({"set": name, "base": base, "by": by, "each": rows, "kinds": kinds})
            means = ", ".join(f"{way} {np.mean(rows[way]):.1f}" for way in list(rows)[:4])
            print(f"{name}, {base}, {by}, {len(rows['alone'])} queries: {means}", flush=True)


Scores = dict[tuple[str, str], np.ndarray]


def of(rows: list[dict[str, Any]], name: str, by: str) -> Scores:
    """(base, way) to the scores of each query; BM25 is one system, whatever the base."""
    found: Scores = {}
    for row in rows:
        if (row["set"], row["by"]) == (name, by):
            found |= {(row["base"] if way != BM25 else "", way): np.array(each) for way, each in row["each"].items()}
    return found


def leaderboard(scores: Scores) -> list[tuple[str, str]]:
    return [key for key in scores if key[1] in (BM25, "alone", "+ BM25", "pipeline")]


def chosen(free: Scores) -> tuple[str, str]:
    """What `likewise choose` says of its own rows."""
    keys = leaderboard(free)
    systems = [
        System(" ".join(key), key[0], "hybrid", DEFAULT, key[1] != "pipeline", float(free[key].mean())) for key in keys
    ]
    each = [free[key] for key in keys]
    usual = next(i for i, one in enumerate(systems) if not one.free)
    best, _ = decided(compared(systems, each, []), each, usual)
    return next(key for key in keys if " ".join(key) == best.name)


def tables(rows: list[dict[str, Any]]) -> str:
    sets, bys = (list(dict.fromkeys(row[what] for row in rows)) for what in ("set", "by"))
    bases = list(dict.fromkeys(row["base"] for row in rows))
    lines = [f"| queries | {' | '.join(f'{one}: tau, regret' for one in sets)} | mean | choose's rows, by its rule |"]
    lines.append("| --- |" + " ---: |" * (len(sets) + 2))
    for by in bys[1:]:
        cells, taus, regrets, of_choose = [], [], [], []
        for name in sets:
            labels, free = (of(rows, name, one) for one in ("labels", by))
            keys = [key for key in labels if key in free]
            if len(keys) < 4:
                cells.append("")
                continue
            tau = kendalltau([labels[key].mean() for key in keys], [free[key].mean() for key in keys]).statistic
            best = max(keys, key=lambda key: free[key].mean())
            regret = max(labels[key].mean() for key in keys) - labels[best].mean()
            taus, regrets = [*taus, tau], [*regrets, regret]
            mine = chosen(free)
            lost = max(labels[key].mean() for key in leaderboard(labels)) - labels[mine].mean()
            of_choose.append(lost)
            cells.append(f"{tau:.2f}, {regret:.2f} ({len(keys)} systems)")
        said = f"{np.mean(of_choose):.2f} ({', '.join(f'{one:.2f}' for one in of_choose)})"
        lines.append(f"| {by} | {' | '.join(cells)} | {np.mean(taus):.2f}, {np.mean(regrets):.2f} | {said} |")
    lines += ["", *named_first(rows, sets, bases)]
    lines += ["", "| by labels | " + " | ".join(sets) + " |", "| --- |" + " ---: |" * len(sets)]
    for key in leaderboard(of(rows, sets[0], "labels")):
        values = [of(rows, name, "labels").get(key) for name in sets]
        cells = ["" if one is None else f"{one.mean():.2f}" for one in values]
        lines.append(f"| {' '.join(key)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def named_first(rows: list[dict[str, Any]], sets: list[str], bases: list[str]) -> list[str]:
    """The regret of choose's rule by the base that is named first, and what it gains over the usual search of that."""
    by = next(row["by"] for row in rows if row["by"].startswith("telltale"))
    lines = [
        f"| choose by its rule, telltale: regret, gain over the first base's pipeline | {' | '.join(sets)} | mean |"
    ]
    lines.append("| --- |" + " ---: |" * (len(sets) + 1))
    orders = [bases, *([one, bases[0]] for one in bases[1:]), *([one] for one in bases[1:])]
    for order in orders:
        cells, regrets = [], []
        for name in sets:
            labels, free = of(rows, name, "labels"), of(rows, name, by)
            there = [key for key in leaderboard(free) if key in labels]
            kept = [key for key in there if key[1] == BM25]
            kept += [key for base in order for key in there if key[0] == base]
            mine = labels[chosen({key: free[key] for key in kept})].mean()
            regrets.append(max(labels[key].mean() for key in kept) - mine)
            cells.append(f"{regrets[-1]:.2f}, {mine - labels[order[0], 'pipeline'].mean():+.2f}")
        lines.append(f"| {'; '.join(order)} | {' | '.join(cells)} | {np.mean(regrets):.2f} |")
    return lines


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--data", type=Path, default=data_folder() / "domain")
    found.add_argument("--table", default="choosing", help="the result file")
    kept = Path.home() / ".cache/likewise/benchmarks/domains"
    found.add_argument("--vectors", type=Path, default=kept, help="the folder of vectors that are kept")
    found.add_argument("--sets", nargs="+", choices=JUDGED, default=list(JUDGED))
    found.add_argument("--bases", nargs="+", choices=BASES, default=list(BASES)[:-1])
    found.add_argument("--seeds", nargs="+", type=int, default=[1])
    found.add_argument("--queries", type=int, default=400, help="queries that are taken out, at most")
    found.add_argument("--passages", type=int, default=3000, help="passages that are searched without labels, at most")
    return found


def main() -> None:
    options = parser().parse_args()
    results = ResultFile(options.table)
    for name in options.sets:
        score(name, options, results)
    print(f"\n{tables(results.rows())}")


if __name__ == "__main__":
    main()
