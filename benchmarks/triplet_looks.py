"""What `arccse` misses by looking for triplets in the wrong order in one of eight updates, and not in all.

    python benchmarks/triplet_looks.py
    python benchmarks/triplet_looks.py --base runs/raw-start/start --pooling cls
    python benchmarks/triplet_looks.py --untrained 200

It trains with `triplet_every=1`, notes in which updates a triplet was in the wrong order, and counts those in which the
schedule of `triplet_every=8` would not have looked. Then it trains with 8, from the same seed, and compares weights.
With --untrained it counts instead, for each way to mask, how many triplets of the base are in the wrong order.
Rows go to `benchmarks/results/triplet-looks.jsonl`.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file

import likewise
from likewise.corpus import prepare
from likewise.encoder import TripletWatch
from likewise.recipes import ArcCSEOptions, find_recipe
from likewise.recipes.arccse import arccse_loss, triplet_views
from likewise.runs.cache import data_folder
from rows import ResultFile


def trained(args: argparse.Namespace, every: int, out: Path) -> list[float | None]:
    """Train into a folder; return the share of wrong triplets of each update, None where it was not looked at."""
    shares: dict[int, float | None] = {}

    def noting(loss, sentences, triplets=None):
        parts = arccse_loss(loss, sentences, triplets)
        shares[loss.step] = loss.measures().get("triplets_out_of_order")
        return parts

    likewise.train(
        replace(find_recipe("arccse"), loss=noting),
        args.corpus,
        base=args.base,
        out=out,
        seed=args.seed,
        quiet=True,
        pooling=args.pooling,
        masks=args.masks,
        learning_rate=args.learning_rate,
        max_steps=args.steps,
        triplet_every=every,
        select_by="last",
    )
    return [shares[step] for step in sorted(shares)]


def missed(shares: list[float | None], every: int) -> list[int]:
    """Return the updates with a wrong triplet in which the schedule would not have looked."""
    watch, steps = TripletWatch(every), []
    for step, share in enumerate(shares):
        if not watch.is_due(step):
            steps += [step] if share else []
        elif share:
            watch.restart(step)
    return steps


def wrong_order(args: argparse.Namespace) -> list[dict[str, object]]:
    """Return a row for each way to mask: the share of long sentences whose triplet the base has in the wrong order."""
    model = likewise.load(args.base, precision="fp32")
    corpus = prepare(args.corpus).dataset
    rows = [{"sentence": row["sentence"], "words": row["words"]} for row in corpus if row["words"] >= 25]
    rows = rows[: args.untrained]
    made = []
    for masks in ("nested", "independent"):
        for farther in (0.4, 0.25):
            options = ArcCSEOptions(masks=masks, mask_farther=farther)
            texts = triplet_views(rows, options, model.tokenizer.mask_token, args.seed)["triplet"]
            anchors, closer, other = torch.from_numpy(model.encode(texts)).chunk(3)
            wrong = torch.cosine_similarity(anchors, other) > torch.cosine_similarity(anchors, closer)
            arm = f"{Path(args.base).name}, {masks} 20 and {100 * farther:.0f}%, untrained"
            made.append({"arm": arm, "seed": args.seed, "set": "triplets", "sentences": len(wrong)})
            made[-1]["score"] = 100 * float(wrong.float().mean())
    return made


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    parser.add_argument("--base", default="bundled:minilm")
    parser.add_argument("--pooling", default="own")
    parser.add_argument("--masks", default="nested", choices=["nested", "independent"])
    parser.add_argument("--learning-rate", type=float, default=3e-5)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--untrained", type=int, default=0, help="number of long sentences to count on")
    return parser


def main() -> None:
    args = parser().parse_args()
    results = ResultFile("triplet-looks", command="python benchmarks/triplet_looks.py")
    if args.untrained:
        rows = wrong_order(args)
        print(rows)
        results.add(*rows)
        return
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / "all", Path(name) / "some"]
        shares = trained(args, 1, folders[0])
        some = trained(args, args.every, folders[1])
        weights = [load_file(folder / "model.safetensors") for folder in folders]
    equal = all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    row = {
        "arm": f"{Path(args.base).name}, {args.masks}, {args.steps} updates",
        "seed": args.seed,
        "set": "triplets",
        "score": 100 * sum(share or 0.0 for share in shares) / len(shares),
        "updates_with_wrong": sum(bool(share) for share in shares),
        "last_with_wrong": max((step for step, share in enumerate(shares) if share), default=-1),
        "missed": len(missed(shares, args.every)),
        "looked_at": sum(share is not None for share in some),
        "updates": len(shares),
        "weights_equal": equal,
        "options": {"every": args.every, "pooling": args.pooling, "learning_rate": args.learning_rate},
    }
    print(row)
    results.add(row)


if __name__ == "__main__":
    main()
