"""Topics beside the classes that people gave the same texts: NMI, ARI and purity.

    python benchmarks/topics.py --dev    # chooses the resolution and the neighbours: dev parts of three sets
    python benchmarks/topics.py          # confirms the default on their test parts
    python benchmarks/topics.py --peer   # beside UMAP and HDBSCAN, as BERTopic has them (pip install umap-learn)

Banking messages (77 intents), sentences of security reports (about 50 techniques), titles of biomedical papers (20
classes); 2,000 texts of each at most. K-means is given the true number of classes, which nobody knows who
looks for topics.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import likewise
from likewise.clusters import communities as graph
from rows import ResultFile

DATA = Path(os.environ.get("LIKEWISE_DATA") or Path(__file__).parents[2] / "shared" / "data")
MODEL = "bundled:minilm"
MOST = 2000
SETS = ("banking", "threats", "biomedicine")
RESULTS = Path(__file__).parent / "results" / "topics"


def read(name: str, part: str) -> tuple[list[str], list[str]]:
    lines = (DATA / f"domain/{name}/classes-{part}.tsv").read_text(encoding="utf-8").splitlines()
    random.Random(1).shuffle(lines)  # they are sorted by class
    rows = [line.split("\t", 1) for line in lines[:MOST]]
    return [text for _, text in rows], [label for label, _ in rows]


def purity(labels: list[str], groups: np.ndarray) -> float:
    """Return the share of texts whose class is the most frequent one of their group."""
    found = 0
    for group in np.unique(groups):
        inside = [labels[i] for i in np.flatnonzero(groups == group)]
        found += max(inside.count(label) for label in set(inside))
    return found / len(labels)


def row(name: str, way: str, labels: list[str], groups: np.ndarray, **facts: float) -> dict:
    measured = {
        "set": name,
        "way": way,
        "texts": len(labels),
        "classes": len(set(labels)),
        "topics": len(np.unique(groups)),
        "NMI": round(100 * normalized_mutual_info_score(labels, groups), 1),
        "ARI": round(100 * adjusted_rand_score(labels, groups), 1),
        "purity": round(100 * purity(labels, groups), 1),
        **facts,
    }
    print(json.dumps(measured), flush=True)
    return measured


def by_umap(texts: list[str]) -> tuple[np.ndarray, float]:
    """Return groups by BERTopic's defaults, and the share without one; these go to the nearest group here."""
    import umap
    from sklearn.cluster import HDBSCAN

    vectors = likewise.load(MODEL, precision="fp32").encode(texts, normalize_embeddings=True)
    reduced = umap.UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=1)
    groups = HDBSCAN(min_cluster_size=10).fit_predict(reduced.fit_transform(vectors))
    rest = groups < 0
    centres = graph.centres_of(vectors[~rest], groups[~rest], int(groups.max()) + 1)
    groups[rest] = (vectors[rest] @ centres.T).argmax(axis=1)
    return groups, round(float(rest.mean()), 3)


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--dev", action="store_true", help="the sets that choose")
    options.add_argument("--peer", action="store_true", help="beside UMAP and HDBSCAN")
    options.add_argument("--table", default="topics", help="the result file")
    return options


def main() -> None:
    args = parser().parse_args()
    rows = []
    for name in SETS:
        texts, labels = read(name, "dev" if args.dev else "test")
        if args.peer:
            groups, rest = by_umap(texts)
            rows.append(row(name, "UMAP and HDBSCAN", labels, groups, rest=rest))
            continue
        asked = len(set(labels))
        found = likewise.topics(texts, model=MODEL, number=asked, quiet=True)
        rows.append(row(name, "k-means, the true number", labels, found.of))
        if args.dev:
            for near in (5, 10, 15):
                for resolution in (1.0, 2.0, 4.0):
                    graph.NEAREST = near
                    found = likewise.topics(texts, model=MODEL, resolution=resolution, quiet=True)
                    rows.append(row(name, f"{near} nearest, resolution {resolution:g}", labels, found.of))
        else:
            rows.append(row(name, "likewise topics", labels, likewise.topics(texts, model=MODEL, quiet=True).of))
    part = "dev" if args.dev else "peer" if args.peer else "test"
    ResultFile(args.table).add(*({"part": part, "model": MODEL} | row for row in rows))


if __name__ == "__main__":
    main()
