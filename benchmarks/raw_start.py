"""The papers' own road: the methods from a pretrained language model, which was never trained on sentences.

    python benchmarks/raw_start.py
    python benchmarks/raw_start.py --arms simcse arccse --seeds 1 --device cuda
    python benchmarks/raw_start.py --figures --seeds 1
    python benchmarks/raw_start.py --speaks 55 --start-steps 300

All-MiniLM-L6-v2 is a fine-tuned sentence encoder, and no pretrained language model of its size is bundled. It is
therefore trained by masked language modelling on the corpus until the mean of its tokens scores as high on STS-B dev as
BERT's (`--target`). This MLM checkpoint is saved in --out, and every arm starts from it; arms.py describes what the
arms share. `--base` selects your own pretrained language model instead.

`--trained` scores what is trained on other tasks:

    python benchmarks/raw_start.py --trained runs/raw-start --tasks transfer --out runs/raw-start/transfer --seeds 1

`--figures` trains the arms of ArcCSE's figures 4 to 7 and table 3, all by default, and scores them on STS-B dev alone.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from transformers import AutoModelForMaskedLM, AutoTokenizer, DataCollatorForLanguageModeling

from arms import Arm, dev_score, folder_of, own_precision, parser_of, run
from likewise.encoder.poolings import MASK, TEMPLATE, split_template
from rows import ResultFile
from sncse_sts import TWO

RATE, WARM_UP, BATCH, LENGTH = 5e-4, 50, 64, 64
"""Of the masked language modelling."""


def at_the_mask(tokenizer: Any, texts: Sequence[str], shares: np.ndarray, draw: np.random.Generator) -> Any:
    """Return prompts whose mask stands for a word of their sentence, and its id as the label at the mask.

    Args:
        shares: (V,) share of each token in the corpus: a word is drawn by 1e-3 / (1e-3 + its share).
    """
    before, after = (part.replace(MASK, tokenizer.mask_token) for part in split_template(TEMPLATE))
    words = tokenizer(list(texts), add_special_tokens=False, truncation=True, max_length=LENGTH - 16)["input_ids"]
    weights = [1e-3 / (1e-3 + shares[ids]) for ids in words]
    labels = [draw.choice(ids, p=weight / weight.sum()) for ids, weight in zip(words, weights, strict=True)]
    shown = [f"{before}{tokenizer.decode(ids)}{after}" for ids in words]
    batch = tokenizer(shown, padding=True, return_tensors="pt")
    batch["labels"] = torch.full_like(batch["input_ids"], -100)
    batch["labels"][batch["input_ids"] == tokenizer.mask_token_id] = torch.tensor(np.array(labels))
    return batch


def make_start(args: argparse.Namespace, speaks: bool = False) -> None:
    """Train the encoder on masked words until it scores as a pretrained language model, and save it.

    With `speaks`, that start learns to name a word of a sentence at the mask of SNCSE's prompt, until the mask scores
    what --speaks asks for.
    """
    from likewise.corpus import prepare
    from likewise.encoder.build import build_encoder, build_prompt_encoder
    from likewise.encoder.location import check_loadable

    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = "start-speaking" if speaks else "start"
    path, part = args.out / "start" if speaks else check_loadable(args.finished).path, args.out / f"{name}.part"
    tokenizer = AutoTokenizer.from_pretrained(path)
    # The prediction of words starts at random, but for the words themselves: the encoder is shipped without it.
    model: Any = AutoModelForMaskedLM.from_pretrained(path, dtype=torch.float32).to(device).train()
    if not hasattr(model, "cls"):
        raise SystemExit(f"--finished {args.finished}: its masked words are not predicted as BERT's; take a BERT")
    text = prepare(args.corpus).dataset["sentence"]
    order = np.random.default_rng(1).permutation(len(text))
    collate = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    counts, draw = np.ones(len(tokenizer)), np.random.default_rng(1)
    if speaks:
        np.add.at(counts, np.concatenate(tokenizer(list(text[:20_000]), add_special_tokens=False)["input_ids"]), 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    course, losses, started = [], list[float](), time.monotonic()
    for step in range(args.start_steps):
        rows = order[np.arange(step * BATCH, (step + 1) * BATCH) % len(order)].tolist()
        if speaks:
            batch = at_the_mask(tokenizer, [text[row] for row in rows], counts / counts.sum(), draw).to(device)
        else:
            batch = collate([tokenizer(text[row], truncation=True, max_length=LENGTH) for row in rows]).to(device)
        labels = batch.pop("labels")
        asked = labels != -100
        with torch.autocast(device, dtype=torch.bfloat16, enabled=own_precision() == "bf16"):
            states = model.base_model(**batch)[0]  # (B, T, D)
            loss = torch.nn.functional.cross_entropy(model.cls(states[asked]).float(), labels[asked])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = RATE * min(1, (step + 1) / WARM_UP)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % args.start_every:
            continue
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
        build = build_prompt_encoder if speaks else partial(build_encoder, pooling="mean")
        dev = dev_score(build(str(part), head=False).eval(), args.data)
        course.append({"step": step + 1, "loss": float(np.mean(losses)), "score": dev})
        losses.clear()
        print(f"{time.strftime('%H:%M:%S')} {course[-1]}", flush=True)
        if dev >= args.speaks if speaks else dev <= args.target:
            break
    about = {"finished": args.finished, "rate": RATE, "batch_size": BATCH, "max_length": LENGTH, "target": args.target}
    about |= {"seconds": round(time.monotonic() - started, 1)}
    row = {"arm": "the start, at the mask" if speaks else "the start", "set": "sts-b-dev"}
    ResultFile(args.table).add(*(row | at for at in course), row | course[-1] | {"about": about})
    part.replace(args.out / name)


def as_it_is(pooling: str) -> Any:
    """The start, untrained, read by a pooling or at the mask of the paper's prompt."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        from likewise.encoder.build import build_encoder, build_prompt_encoder

        if pooling == "mask":
            model = build_prompt_encoder(args.base, head=False).eval()
        else:
            model = build_encoder(args.base, pooling=pooling, head=False).eval()  # type: ignore[arg-type]
        return {"model": model, "dev": dev_score(model, args.data, args.precision), "step": 0}

    return make


def fitted(name: str, **options: Any) -> Any:
    """A baseline that is fitted to the corpus: whitening or a flow."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        import likewise
        from compared.baselines import baseline

        given = {"base": args.base, "out": out, "seed": args.seed, "overwrite": True, "quiet": True}
        baseline(name, args.corpus, **given, **options)
        model = likewise.load(out, precision="fp32")
        return {"model": model, "dev": dev_score(model, args.data, args.precision), "step": 0}

    return make


def as_trained(arm: str) -> Any:
    """The model of an arm that lies in the folder `--trained`, with what its run knows."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        import likewise

        folder = folder_of(args.trained, arm, args.seed)
        record = json.loads((folder / "likewise.json").read_text())
        best = record.get("best") or {"score": None, "step": record["steps"]}
        facts = {"dev": best["score"], "step": best["step"], "options": record["options"]}
        return facts | {"model": likewise.load(folder, precision="fp32")}

    return make


# One rate for all that are trained by AdamW, that of this library's presets for contrastive learning; bfloat16 where
# the machine is made for it.
ONE = {"learning_rate": 1e-4, "precision": "auto"}
ARC = ONE | {"pooling": "cls"}
SNCSE = ONE | {"head": True, "distil_mask": "never"}
ARMS = {
    "untrained, mean": Arm(as_it_is("mean"), seeds=False),
    "untrained, [CLS]": Arm(as_it_is("cls"), seeds=False),
    "untrained, mask": Arm(as_it_is("mask"), seeds=False),
    "whitening": Arm(fitted("whitening"), seeds=False),
    "flow": Arm(fitted("flow"), seeds=False),
    "simcse": Arm("simcse", ARC),
    "arccse": Arm("arccse", ARC),
    "arccse without triplets": Arm("arccse", ARC | {"triplet_weight": 0.0}),
    "arccse without ArcCon": Arm("arccse", ARC | {"contrastive": "nt-xent"}),
    "arccse with SAM": Arm("arccse", ARC | {"sam_rho": 0.05}, seeds=False),
    "sncse": Arm("sncse", SNCSE),
    "sncse without the margin loss": Arm("sncse", SNCSE | {"negation": "none"}),
    "sncse, negation as a positive": Arm("sncse", SNCSE | {"negation": "positive"}, seeds=False),
    "sncse, negation as a hard negative": Arm("sncse", SNCSE | {"negation": "hard-negative"}, seeds=False),
    "sncse in two prompts": Arm("sncse", SNCSE | TWO, seeds=False),
    "sncse, dropout 0.05": Arm("sncse", SNCSE | {"dropout": 0.05}, seeds=False),
    "esimcse": Arm("esimcse", ARC, seeds=False),
    "consert": Arm("consert", ONE, seeds=False),
    "ct": Arm("ct", {"precision": "auto"}, seeds=False),  # RMSprop, at its own rate
    "tsdae": Arm("tsdae", ONE, seeds=False),
}


def figure(name: str, values: list[Any], **more: Any) -> dict[str, Arm]:
    """The arms of an option's values."""
    return {
        f"{name.replace('_', ' ')} {value}": Arm("arccse", ARC | {name: value} | more, seeds=False) for value in values
    }


# The values of each figure but for that of the default, which is the arm `arccse`.
FIGURES = {
    "4": figure("margin", [0.0, 5.0, 15.0, 20.0]),
    "5": figure("temperature", [0.01, 0.03, 0.07, 0.1]),
    "table-3": {
        "one view without dropout": Arm("arccse", ARC | {"positive_dropout": False}),
        "one view without dropout, margin 5": Arm(
            "arccse", ARC | {"positive_dropout": False, "margin": 5.0}, seeds=False
        ),
        "dropout in the triplets": Arm("arccse", ARC | {"triplet_dropout": True}, seeds=False),
    },
    "7": figure("triplet_weight", [0.3, 1.2]),
    "6": {
        f"masks {closer} and {farther}": Arm(
            "arccse", ARC | {"mask_closer": closer, "mask_farther": farther}, seeds=False
        )
        for closer, farther in ((0.1, 0.2), (0.2, 0.55))
    },
}
OTHERS = {name: arm for arms in FIGURES.values() for name, arm in arms.items()}


def parser() -> argparse.ArgumentParser:
    budget = {"table": "raw-start", "steps": 80, "eval_steps": 40}
    parser = parser_of(ARMS | OTHERS, __doc__, arms=[], out=Path("runs/raw-start"), base="", **budget)
    parser.add_argument(
        "--figures", nargs="*", choices=FIGURES, help="of ArcCSE: the figures to train for; with no value, all"
    )
    parser.add_argument("--finished", default="bundled:minilm", help="the encoder that is taken back")
    parser.add_argument(
        "--trained", type=Path, help="score the models in this folder and train none, for other --tasks"
    )
    parser.add_argument("--target", type=float, default=55.0, help="score on STS-B dev at which it is raw")
    parser.add_argument(
        "--speaks",
        type=float,
        default=0.0,
        help="make a start from it whose mask scores so much on STS-B dev, and stop",
    )
    parser.add_argument("--start-steps", type=int, default=350, help="updates at most to get there")
    parser.add_argument("--start-every", type=int, default=50, help="updates between two looks at STS-B dev")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    return parser


def main() -> None:
    args = parser().parse_args()
    if args.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif args.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("--device cuda: torch finds no GPU here; leave the option out, or install torch for CUDA")
    args.precision = args.precision or own_precision()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.figures is not None:
        args.tasks = "sts-b-dev"
        chosen = {name: arm for one in args.figures or FIGURES for name, arm in FIGURES[one].items()}
        args.arms = ["arccse", *chosen]
    if not args.base:
        args.base = str((args.trained or args.out) / "start")
        with FileLock(f"{args.base}.lock"):
            if not Path(args.base).exists():
                make_start(args)
    if args.speaks:
        make_start(args, speaks=True)
        return
    args.arms = args.arms or list(ARMS)
    every = ARMS | OTHERS
    if args.trained:
        every |= {
            name: replace(arm, recipe=as_trained(name)) for name, arm in every.items() if not callable(arm.recipe)
        }
    run(every, args)


if __name__ == "__main__":
    main()
