"""GCLSR's tables of STS scores: rows of tables 2 and 4 to 11, each over several seeds.

    python benchmarks/gclsr/sts.py CORPUS --out runs/gclsr [--data DATA] [--vectors bundled:glove] [--preset paper]
        [--rows table2 table9] [--seeds 1 2 3] [--tasks sts]

Each run is `likewise train gclsr` followed by `likewise evaluate`; a run that is finished is not done again. The mean
word vector stands in the table too. Printed as Markdown: mean and standard deviation over the seeds.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

import likewise
from likewise.encoder.word_vectors import build_word_vectors

BASE: dict[str, Any] = {"augmentation": "none", "attention": False, "group_size": 0}
TABLES: dict[str, dict[str, dict[str, Any]]] = {
    "table2": {
        "GCLSR base": BASE,
        "+ EDA": BASE | {"augmentation": "edits"},
        "+ PWVA": BASE | {"augmentation": "partial"},
        "+ PWVA + self-att.": BASE | {"augmentation": "partial", "attention": True},
        "+ EDA + self-att. + GP": {"augmentation": "edits"},
        "+ PWVA + self-att. + GP": {},
    },
    "table4": {f"batch {n}": {"batch_size": n} for n in (64, 128, 256, 512, 1024)},
    "table5": {f"weight decay {x}": {"weight_decay": x} for x in (1e-4, 1e-3, 1e-2, 1e-1)},
    "table6": {f"predictor {x or 'decay'}": {"predictor_rate": x} for x in (0.0, 0.08, 0.2, 0.5, 1.0)},
    "table7": {
        f"momentum {a}, {b}": {"momentum": a, "momentum_after": b}
        for a, b in ((0.8, 0.8), (0.9, 0.9), (0.99, 0.99), (0.9, 0.8))
    },
    "table8": {f"warm-up {n}": {"warmup_epochs": n} for n in (1, 2, 3, 4, 5)},
    "table9": {
        f"regions {r}": {"regions": r}
        for r in (
            *("1,2,3,4,5,6", "2,3,4,5,6", "1,1,1,2,3,4", "1,1,1,4,5,6"),
            *("1,1,1,1,1,1", "1,1,1,6,15,20", "1,1,1,20,30,40"),
        )
    },
    "table10": {f"{name} augmentation": {"augmentation": name} for name in ("none", "full", "partial")},
    "table11": {f"groups of {n or 'all'}": {"group_size": n} for n in (0, 4, 8, 16, 32, 128)},
}


def scores(model: Any, tasks: str, data: str | None) -> dict[str, float]:
    report = likewise.evaluate(model, tasks, data, progress=False)
    return {result.name: result.score for result in report.results}


def mean_of_words(vectors: str) -> SentenceTransformer:
    words = build_word_vectors(vectors, None, most_frequent=10**9)
    return SentenceTransformer(modules=[words, Pooling(words.get_embedding_dimension(), pooling_mode="mean")])


def line(name: str, runs: list[dict[str, float]]) -> str:
    averages = [statistics.mean(run.values()) for run in runs]
    cells = [f"{statistics.mean(run[task] for run in runs):.2f}" for task in runs[0]]
    spread = f" ± {statistics.stdev(averages):.2f}" if len(runs) > 1 else ""
    return f"| {name} | {' | '.join(cells)} | {statistics.mean(averages):.2f}{spread} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data")
    parser.add_argument("--vectors", default="bundled:glove")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--rows", nargs="+", choices=TABLES, default=["table2"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--tasks", default="sts")
    given = parser.parse_args()
    base = scores(mean_of_words(given.vectors), given.tasks, given.data)
    print(f"| model | {' | '.join(base)} | average |\n|{' --- |' * (len(base) + 2)}")
    print(line("mean of word vectors", [base]))
    for table in given.rows:
        for name, changes in TABLES[table].items():
            runs = []
            for seed in given.seeds:
                out = given.out / table / name.replace(" ", "_").replace(",", "-") / str(seed)
                if not (out / "modules.json").exists():
                    likewise.train(
                        "gclsr", given.corpus, given.vectors, out, preset=given.preset, seed=seed, data=given.data,
                        overwrite=True, quiet=True, **changes,
                    )  # fmt: skip
                runs.append(scores(out, given.tasks, given.data))
            print(line(name, runs), flush=True)


if __name__ == "__main__":
    main()
