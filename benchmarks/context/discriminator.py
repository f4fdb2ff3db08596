"""Held-out accuracy of the coherence discriminator on real articles.

    python benchmarks/context/discriminator.py --work runs/discriminator

The index and the training are stages of a workspace: a stopped run goes on with the same command.
"""

from __future__ import annotations

import argparse
import json

import torch

from likewise.context import build_index, read_sections, read_states, train_discriminator
from likewise.corpus.downloads import data_folder


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--corpus", default=data_folder() / "wikipedia/articles.jsonl.gz")
    found.add_argument("--work", required=True)
    found.add_argument("--documents", type=int, default=3000)
    found.add_argument("--preset", choices=("frozen", "paper"), default="paper")
    found.add_argument("--threads", type=int, default=1)
    found.add_argument("--set", action="append", default=[], help="section.name=value, as on the command line")
    return found


def main() -> None:
    given = parser().parse_args()
    torch.set_num_threads(given.threads)
    options = read_sections(None, [f"index.documents={given.documents}", *given.set], given.preset)
    index = build_index(given.work, given.corpus, options["index"])
    read_states(given.work, options["states"])
    stage = train_discriminator(given.work, options["discriminator"])
    print(
        f"corpus {given.corpus}: " + ", ".join(f"{index.record[name]:,} {name}" for name in ("documents", "sentences"))
    )
    print(f"options {stage.record['plan']['options']}")
    print(f"machine {stage.record['machine']}")
    facts, found = stage.record, stage.record["held_out"]
    print(f"{facts['steps']} steps in {facts['cpu_seconds']:.0f} s of CPU, {facts['parameters']:,} parameters")
    print("| step | CPU s | accuracy | own sentence | same document | other document |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for line in (stage.folder / "log.jsonl").read_text(encoding="utf-8").splitlines():
        print(_row(json.loads(line)["step"], json.loads(line)["cpu_seconds"], json.loads(line)))
    print(f"{_row('chosen', '', found)}  <- {found['contexts']:,} contexts of documents that chose nothing")


def _row(step: object, seconds: object, found: dict[str, float]) -> str:
    names = "accuracy", "positive", "same_document", "other_document"
    return f"| {step} | {seconds} | " + " | ".join(f"{100 * found[name]:.1f}" for name in names) + " |"


if __name__ == "__main__":
    main()
