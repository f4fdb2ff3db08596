"""The fine-tuned encoders that everything is compared with, as they are shipped, on the tasks of the tables.

    python benchmarks/bases.py
    python benchmarks/bases.py --models bundled:minilm --tasks sts,semantoneg,negation-gap

What is in the result file is not added again.
"""

from __future__ import annotations

import argparse

import likewise
from likewise.runs.cache import data_folder
from rows import ResultFile


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--models", nargs="+", default=["bundled:minilm", "bundled:mpnet"], metavar="MODEL")
    found.add_argument("--tasks", default="sts")
    found.add_argument("--data", default=data_folder() / "senteval")
    found.add_argument("--table", default="bases", help="the result file")
    return found


def main() -> None:
    args = parser().parse_args()
    results = ResultFile(args.table)
    for model in args.models:
        report = likewise.evaluate(model, args.tasks, data=args.data)
        scores = {result.name: result.score for result in report.results}
        scores |= {"average": report.averages["sts"]} if "sts" in report.averages else {}
        new = {name: score for name, score in scores.items() if not results.has(arm=model, set=name)}
        results.add(*({"arm": model, "set": name, "score": score} for name, score in new.items()))
        print(report.table())


if __name__ == "__main__":
    main()
