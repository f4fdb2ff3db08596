"""A model and the base it comes from on tasks of mteb, which fetches them from the model hub.

    python benchmarks/mteb_tasks.py --model runs/mine --base bundled:minilm --tasks STS12 NFCorpus

Tasks have the names of mteb.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

import mteb

import likewise


def scores(names: Iterable[str], tasks: Any) -> dict[str, list[float]]:
    """The main score of each task times 100, in the order of the tasks, by model."""
    return {
        name: [
            100 * one.get_score()
            for one in mteb.evaluate(
                likewise.load(name, precision="fp32"), tasks, cache=None, show_progress_bar=False
            ).task_results
        ]
        for name in names
    }


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--model", nargs="+", required=True)
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--tasks", nargs="+", required=True, help="names of mteb's tasks, as STS12 or NFCorpus")
    return found


def main() -> None:
    args = parser().parse_args()
    tasks = mteb.get_tasks(tasks=args.tasks)
    found = scores([args.base, *args.model], tasks)
    print("| model | " + " | ".join(task.metadata.name for task in tasks) + " |")
    print("| --- |" + " ---: |" * len(tasks))
    for name, row in found.items():
        print(f"| {name} | " + " | ".join(f"{score:.2f}" for score in row) + " |")


if __name__ == "__main__":
    main()
