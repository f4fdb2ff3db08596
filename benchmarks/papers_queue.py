"""The claims of the papers, one after the other: a queue of trainings that can be stopped and resumed.

    python benchmarks/papers_queue.py --list
    nice python benchmarks/papers_queue.py --tables sncse-margin arccse-parts --out runs/papers
    python benchmarks/papers_queue.py --tables whole-raw whole --device cuda --workers 15 --sentences 400000

Each run is a process of its own. It trains one arm with one seed, scores the seven STS tasks and writes its rows into
`benchmarks/results/papers-TABLE.jsonl`; a row that is there is not run again, and a training that was stopped goes on
where it was. Arms of a table share corpus, updates, batch size, seeds and the steps at which STS-B dev chooses a
checkpoint, so that the differences of two arms can be paired by seed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.recipes import Recipe
from likewise.recipes.gclsr import GCLSR
from likewise.runs.cache import data_folder
from likewise.runs.whole_files import write_text
from rows import ResultFile, difference

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

    from likewise.losses import EncoderLoss

MEASURES = ("outside_margins", "triplets_out_of_order")


@dataclass(frozen=True)
class Arm:
    """A row of a table: a recipe, its options, and what it starts from.

    Args:
        start: 'base' for --base, 'mask' for its distilled mask, 'raw' for the start of raw_start.py, 'nli' for that
            start after a training on SNLI's dev part, as SBERT is one of BERT, 'left out' for GloVe without the words
            that word2vec lacks, 'speaking' for the MLM checkpoint whose mask names words.
        tasks: what its model is scored on, behind STS-B dev; nothing for a point of a figure. The seven tasks are
            scored twice, without the sentences of the corpus the second time.
        neighbours: a batch is sentences that follow each other in an article, so that InfoNCE is not solved early.
    """

    recipe: str | Recipe
    options: dict[str, Any] = field(default_factory=dict)
    start: str = "base"
    seeds: tuple[int, ...] = (1, 2, 3)
    tasks: str | tuple[str, ...] = "sts"
    neighbours: bool = False


SNCSE: dict[str, Any] = {
    "learning_rate": 3e-5,
    "max_steps": 300,
    "eval_steps": 75,
    "batch_size": 64,
    "max_length": 48,
    "head": False,
    "distil_mask": "never",
    "precision": "auto",
}
ARCCSE: dict[str, Any] = {
    "learning_rate": 3e-5,
    "max_steps": 300,
    "eval_steps": 60,
    "batch_size": 64,
    "max_length": 32,
    "precision": "auto",
}


FIVE = (1, 2, 3, 4, 5)  # of which --seeds asks for three; for a sign that these leave open
AFTER_NLI = ARCCSE | {"max_steps": 120, "eval_steps": 30}


def _sncse(start: str, **more: Any) -> dict[str, Arm]:
    shared = SNCSE | more
    return {
        "InfoNCE alone": Arm("sncse", shared | {"negation": "none"}, start, FIVE),
        "SNCSE, weight 1e-3": Arm("sncse", shared, start, FIVE),
        "SNCSE, weight 1e-1": Arm("sncse", shared | {"weight": 0.1}, start, FIVE),
    }


def _whole(start: str) -> dict[str, Arm]:
    """The papers' length, a million sentences drawn: 15,600 updates of 64, or 3,900 of 256 at the mask of a prompt."""
    raw = start == "raw"
    tokens = ARCCSE | {"max_steps": 15_600, "eval_steps": 1_300, "triplet_limit": 0, "head": True}
    tokens["pooling"] = "cls" if raw else "own"
    mask = SNCSE | {"max_steps": 3_900, "eval_steps": 325, "batch_size": 256, "head": raw}
    prompted = "raw" if raw else "mask"
    return {
        "SimCSE": Arm("simcse", {name: value for name, value in tokens.items() if name != "triplet_limit"}, start),
        "ArcCSE": Arm("arccse", tokens, start),
        "ArcCSE without triplets": Arm("arccse", tokens | {"triplet_weight": 0.0}, start),
        "InfoNCE at the mask": Arm("sncse", mask | {"negation": "none"}, prompted),
        "SNCSE": Arm("sncse", mask, prompted),
    }


def _variants(arm: Arm, seeds: tuple[int, ...], changes: dict[str, dict[str, Any]]) -> dict[str, Arm]:
    """An arm with some options changed, by name."""
    return {name: replace(arm, options=arm.options | more, seeds=seeds) for name, more in changes.items()}


def with_negatives(loss: EncoderLoss[Any], *columns: dict[str, Any]) -> Tensor:
    """Return InfoNCE of the projections of two views, with the batch's other sentences as negatives."""
    from likewise.losses import functional

    first, second = (loss.model(dict(columns[place]))["projection"] for place in (0, -1))
    return functional.nt_xent(first, second)


LEFT_OUT = frozenset(("a", "of", "to", "and"))
"""The frequent words that GoogleNews word2vec lacks."""
ROWS = 64
"""The words to which GCLSR's authors pad a sentence; their filters read the padding too."""


def padded_network(base: str, options: Any, sentences: Sequence[str]) -> SentenceTransformer:
    """Return GCLSR's network with filters that read every sentence as `ROWS` words, zeros behind its own."""
    from torch.nn import functional as F

    from likewise.encoder.text_cnn import TextCNN

    network = GCLSR.build_encoder(base, options, sentences)

    def read_padding(cnn: Any, arguments: tuple[dict[str, Tensor]]) -> None:
        (features,) = arguments
        missing = max(0, ROWS - features["attention_mask"].shape[1])
        features["token_embeddings"] = features["token_embeddings"] * features["attention_mask"][:, :, None]
        features["token_embeddings"] = F.pad(features["token_embeddings"], (0, 0, 0, missing))
        features["attention_mask"] = F.pad(features["attention_mask"], (0, missing)).fill_(1)

    for module in network.modules():
        if isinstance(module, TextCNN):
            module.register_forward_pre_hook(read_padding)
    return network


AUTHORS_INPUT = replace(GCLSR, name="gclsr-authors-input", build_encoder=padded_network)
WITH_NEGATIVES = replace(GCLSR, name="gclsr-with-negatives", loss=with_negatives)
VIEWS: dict[str, dict[str, Any]] = {name: {"augmentation": name} for name in ("partial", "authors", "full")}
# Synonyms want nltk's WordNet, which no registry has.
VIEWS["edits"] = {"augmentation": "edits", "edits": "no-synonyms"}


def _gclsr(recipe: str | Recipe, views: Iterable[str]) -> dict[str, Arm]:
    """GCLSR by each view at each rate, with one seed."""
    shared = {"max_steps": 100, "eval_steps": 25}
    return {
        f"{view}, rate x{rate}": Arm(recipe, {"learning_rate": 0.03 * rate, **shared, **VIEWS[view]}, "", (1,))
        for view in views
        for rate in (1, 20, 100)
    }


def _figure(recipe: str, name: str, values: Iterable[Any], shared: dict[str, Any]) -> dict[str, Arm]:
    """A curve of a figure: the MLM checkpoint trained with each value of an option, by two seeds, on STS-B dev."""
    return {f"{name} {value}": Arm(recipe, shared | {name: value}, "raw", (1, 2), "") for value in values}


def _masks(start: str, more: dict[str, Any]) -> dict[str, Arm]:
    """ArcCSE by each way to mask, with all triplets looked at, and without triplets."""
    shared = ARCCSE | {"triplet_every": 1} | more
    where = f"{start}, {more['max_steps']} updates"
    ways = {
        f"{masks} 20 and {percent:.0f}%": {"masks": masks, "mask_farther": percent / 100}
        for masks in ("nested", "independent")
        for percent in (40.0, 25.0)
    }
    ways["no triplets"] = {"triplet_weight": 0.0}
    return {f"{where}: {name}": Arm("arccse", shared | way, start) for name, way in ways.items()}


def _language_model() -> dict[str, Arm]:
    """SimCSE and ArcCSE at the mean of the tokens, and all methods at a prompt's last token, where InfoNCE is SimCSE.

    The last checkpoint is scored: a look at STS-B dev takes as long as ten updates.
    """
    shared = {"preset": "language-model", "max_steps": 20, "select_by": "last", "batch_size": 64, "precision": "auto"}
    mean, last = shared | {"pooling": "mean", "max_length": 32}, shared | {"max_length": 48, "chunk": 64}
    arms = {
        "SimCSE, mean": Arm("simcse", mean),
        "ArcCSE, mean": Arm("arccse", mean),
        "ArcCSE, last token": Arm("arccse", last),
        "InfoNCE alone, last token": Arm("sncse", last | {"negation": "none"}),
        "SNCSE, weight 1e-3, last token": Arm("sncse", last),
        "SNCSE, weight 1e-1, last token": Arm("sncse", last | {"weight": 0.1}),
    }
    return {name: replace(arm, tasks=("sts-b-dev", "sts-b", "sick-r")) for name, arm in arms.items()}


CURVE = ARCCSE | {"max_steps": 80, "eval_steps": 40, "learning_rate": 1e-4, "pooling": "cls", "head": True}

TABLES: dict[str, dict[str, Arm]] = {
    "whole-raw": _whole("raw"),
    "whole": _whole("base"),
    # At the papers' length: heavier margin losses, and SimCSE with options chosen as ArcCSE's are.
    "whole-weights": _variants(
        _whole("raw")["SNCSE"], (1, 2, 3), {f"weight {weight:g}": {"weight": weight} for weight in (1e-2, 1e-1)}
    ),
    "whole-simcse": _variants(
        _whole("raw")["SimCSE"],
        (1, 2),
        {
            f"temperature {temperature} at {rate:g}": {"temperature": temperature, "learning_rate": rate}
            for temperature in (0.03, 0.05, 0.07)
            for rate in (3e-5, 1e-4)
        },
    ),
    # Length and rate, one seed, by STS-B dev.
    "sncse-length": {
        f"{steps} updates at {rate:g}": Arm(
            "sncse", SNCSE | {"max_steps": steps, "learning_rate": rate, "eval_steps": steps // 4}, "mask", seeds
        )
        for steps, rate, seeds in ((120, 3e-5, (1, 2, 3)), (300, 1e-5, (1,)), (300, 1e-4, (1,)), (1000, 3e-5, (1,)))
    },
    "sncse-margin": _sncse("mask"),
    # The paper's preset; a chunk at a time, so that its batch of 256 fits in memory.
    "sncse-preset": {
        "paper-base": Arm("sncse", {"preset": "paper-base", "max_steps": 60, "eval_steps": 30, "chunk": 64}, "raw")
    },
    # Batches of sentences that follow each other, at the length of the default.
    "sncse-neighbours": {
        name: replace(arm, neighbours=True, seeds=(1,))
        for name, arm in _sncse("mask", max_steps=120, eval_steps=30).items()
    },
    "sncse-margin-raw": _sncse("raw", learning_rate=1e-4, head=True),
    # An MLM checkpoint whose mask names words of the sentence: raw_start.py --speaks 55.
    "sncse-speaking": {
        "SimCSE": Arm("simcse", ARCCSE | {"learning_rate": 1e-4, "pooling": "cls", "head": True}, "speaking"),
        **{
            name: replace(arm, seeds=(1, 2, 3))
            for name, arm in _sncse("speaking", learning_rate=1e-4, head=True).items()
        },
    },
    "arccse-length": {
        f"{steps} updates at {rate:g}": Arm(
            "arccse",
            ARCCSE | {"max_steps": steps, "learning_rate": rate, "eval_steps": max(60, steps // 5)},
            "base",
            seeds,
        )
        for steps, rate, seeds in ((120, 3e-5, (1, 2, 3)), (300, 1e-4, (1,)), (300, 3e-5, (1,)), (500, 3e-5, (1,)))
    },
    "arccse-parts": {
        "SimCSE": Arm("simcse", ARCCSE),
        "ArcCSE": Arm("arccse", ARCCSE),
        "ArcCSE without triplets": Arm("arccse", ARCCSE | {"triplet_weight": 0.0}),
        "ArcCSE without the margin": Arm("arccse", ARCCSE | {"margin": 0.0}),
        "ArcCSE, margin of the triplets 0.1": Arm("arccse", ARCCSE | {"triplet_margin": 0.1}),
        "ArcCSE with SAM": Arm("arccse", ARCCSE | {"sam_rho": 0.05}),
    },
    "gclsr-moves": _gclsr("gclsr", VIEWS),
    "gclsr-negatives": _gclsr(WITH_NEGATIVES, ("partial", "edits")),
    # The authors' input: without the words that word2vec lacks, unknown words drawn, sentences padded.
    "gclsr-authors-input": {
        f"rate x{rate}": Arm(
            AUTHORS_INPUT,
            {"preset": "paper", "max_steps": 100, "eval_steps": 25, "learning_rate": 0.03 * rate, "unknown_drawn": 0.1},
            "left out",
            (1,),
            "",  # a saved network reads no padding
        )
        for rate in (1, 20)
    },
    # SBERT's block of ArcCSE's table 1.
    "after-nli": {
        "SimCSE": Arm("simcse", AFTER_NLI, "nli"),
        "ArcCSE": Arm("arccse", AFTER_NLI, "nli"),
        "ArcCSE without triplets": Arm("arccse", AFTER_NLI | {"triplet_weight": 0.0}, "nli"),
    },
    # Figures 4 to 7 of ArcCSE on the grids of the paper; of figure 6 the lowest first mask and the paper's own.
    "arccse-figures": {
        **_figure("arccse", "margin", range(0, 21, 2), CURVE),
        **_figure("arccse", "temperature", [n / 100 for n in range(1, 11)], CURVE),
        **_figure("arccse", "triplet_weight", [0.0, 0.1, 0.3, 0.6, 0.9, 1.2], CURVE),
        **_figure("arccse", "mask_farther", [0.3, 0.35, 0.4, 0.45, 0.5, 0.55], CURVE | {"mask_closer": 0.2}),
    },
    # Triplets that can be in the wrong order: masks drawn by themselves, and versions that differ by less.
    "arccse-masks": {
        **_masks("base", {"max_steps": 80, "eval_steps": 40}),
        **_masks("raw", {"max_steps": 80, "eval_steps": 40, "learning_rate": 1e-4, "pooling": "cls", "head": True}),
        **_masks("base", {"max_steps": 300}),
        **_masks("raw", {"max_steps": 300, "learning_rate": 1e-4, "pooling": "cls", "head": True}),
    },
    # A causal language model, which has no mask: --base bundled:smollm2.
    "language-model": _language_model(),
    # Figure 3 of SNCSE, at the weight that moves the negations.
    "sncse-figures": {
        f"alpha {alpha}, beta {beta}, weight {weight}": Arm(
            "sncse",
            SNCSE
            | {"max_steps": 80, "eval_steps": 40, "learning_rate": 1e-4, "head": True}
            | {"alpha": alpha, "beta": beta, "weight": weight},
            "raw",
            (1, 2),
            "",
        )
        for weight in (0.001, 0.1)
        for alpha in (0.1, 0.2)
        for beta in (0.2, 0.3, 0.4, 2.0)
        if alpha < beta
    },
    # A second base: --base bundled:mpnet --precision bf16.
    "mpnet": {
        "SimCSE": Arm("simcse", ARCCSE | {"max_steps": 120, "eval_steps": 30}),
        "ArcCSE": Arm("arccse", ARCCSE | {"max_steps": 120, "eval_steps": 30}),
        "SNCSE": Arm("sncse", SNCSE | {"max_steps": 120, "eval_steps": 30}, "mask"),
    },
}


def results_of(table: str) -> ResultFile:
    """Return the result file of a table."""
    known = ("--sentences", "--updates", "--device", "--workers", "--base", "--precision")
    words = sys.argv[1:]
    given = [part for name, value in pairwise(words) if name in known for part in (name, value)]
    command = ["python", "benchmarks/papers_queue.py", "--tables", table, *given]
    return ResultFile(f"papers-{table}", command=" ".join(command))


def sentences_of(articles: Path, most: int, out: Path, *, shuffled: bool = True) -> None:
    """Write sentences of 5 to 100 words of articles, each once, shuffled by a fixed seed or in order, one a line."""
    from nupunkt import sent_tokenize

    seen: dict[str, None] = {}
    with gzip.open(articles, "rt", encoding="utf-8") as lines:
        for line in lines:
            for section in json.loads(line)["sections"]:
                texts = (" ".join(text.split()) for part in section["paragraphs"] for text in sent_tokenize(part))
                seen |= dict.fromkeys(text for text in texts if 5 <= len(text.split()) <= 100)
    sentences = list(seen)
    if shuffled:
        random.Random(1).shuffle(sentences)
    write_text(out, "".join(f"{sentence}\n" for sentence in sentences[:most]))


def slug(name: str) -> str:
    """Return a name of an arm as a name of a file."""
    return "-".join("".join(sign if sign.isalnum() else " " for sign in name).split())


def start_of(arm: Arm, args: argparse.Namespace) -> str | None:
    """Return the folder or name that an arm is trained from; the distilled mask is made if it is not there."""
    import likewise

    if arm.start in ("raw", "speaking"):
        raw, more = (args.raw, "") if arm.start == "raw" else (args.raw.with_name("start-speaking"), " --speaks 55")
        if not raw.exists():
            raise SystemExit(f"{raw}: make this start first: python benchmarks/raw_start.py --out {raw.parent}{more}")
        return str(raw)
    if arm.start == "left out":
        return str(without_frequent_words(args.out / "glove-left-out.txt"))
    if arm.start == "nli":
        folder = args.out / "nli"
        if not folder.exists():
            snli = args.data / "SNLI/labels.dev"
            start = start_of(replace(arm, start="raw"), args)
            likewise.finetune("nli", snli, base=str(start), out=folder, seed=1, data=args.data)
        return str(folder)
    if arm.start == "mask":
        folder = args.out / "mask"
        from likewise.recipes.mask_distillation import MASK_DISTILLATION

        likewise.train(MASK_DISTILLATION, args.corpus, base=args.base, out=folder, seed=1, data=args.data)
        return str(folder)
    return args.base if arm.start == "base" else None


def without_frequent_words(path: Path) -> Path:
    """Write the bundled GloVe vectors without the words that word2vec lacks, and return the file."""
    from likewise.encoder.vector_files import read_word_vectors

    if not path.exists():
        table = read_word_vectors("bundled:glove")
        rows = zip(table.words, table.vectors, strict=True)
        lines = (f"{word} {' '.join(f'{x:.5f}' for x in vector)}\n" for word, vector in rows if word not in LEFT_OUT)
        write_text(path, "".join(lines))
    return path


def in_order(args: argparse.Namespace, rows: int) -> Path:
    """Return a corpus of sentences in the order of their articles, and let the sampler cut it into batches as it is.

    A sampler sorts rows by their length within pools: here the length is the place, and all rows are one pool.
    """
    from likewise.training import batches, trainer

    trainer.lengths_of = lambda dataset, model: np.arange(len(dataset))
    batches.BATCHES_IN_A_POOL = rows
    corpus: Path = args.out / f"in-order-{rows}.txt"
    if not corpus.exists():
        sentences_of(data_folder() / "wikipedia/articles.jsonl.gz", rows, corpus, shuffled=False)
    return corpus


def one_run(args: argparse.Namespace) -> None:
    """Train one arm with one seed, score it, and append its row."""
    import likewise

    table, name = args.run
    arm = TABLES[table][name]
    options = arm.options
    if args.updates:
        updates = args.updates * 64 // options.get("batch_size", 64)
        options = options | {"max_steps": updates, "eval_steps": max(1, updates // 12)}
    folder = args.out / table / f"{slug(name)}-{args.seed}"
    corpus = in_order(args, options["max_steps"] * options["batch_size"]) if arm.neighbours else args.corpus
    result = likewise.train(
        arm.recipe,
        corpus,
        base=start_of(arm, args),
        out=folder,
        seed=args.seed,
        data=args.data,
        quiet=True,
        **options,
    )
    model = likewise.load(folder, precision=args.precision)
    shared = {"arm": name, "seed": args.seed}
    about = {"base": args.base if arm.start else "of the recipe", "start": arm.start}
    about |= {"recipe": arm.recipe if isinstance(arm.recipe, str) else arm.recipe.name, "options": options}
    best = result.best or {"score": None, "step": result.steps}
    scores: dict[str, float | None] = {}
    for suffix, without in (("", False), (", without overlap", True)) if arm.tasks == "sts" else (("", False),):
        if arm.tasks:
            report = likewise.evaluate(model, arm.tasks, data=args.data, without_overlap=without)
            scores |= {f"{score.name}{suffix}": score.score for score in report.results}
            scores |= {f"average{suffix}": report.average} if arm.tasks == "sts" else {}
    if arm.recipe == "sncse" and arm.tasks == "sts":
        scores["semantoneg"] = likewise.evaluate(model, "semantoneg", data=args.data).results[0].score
    dev = scores.pop("sts-b-dev", best["score"])
    known = {"step": best["step"], "before": (result.before or {}).get("sts_dev_spearman")}
    known |= {"seconds": result.record["seconds"], **about}
    measured: list[dict[str, Any]] = [
        {**shared, "set": "sts-b-dev", "score": dev, **known},
        *({**shared, "set": name, "score": score} for name, score in scores.items()),
        *({**shared, **row} for row in measures_of(folder)),
    ]
    results_of(table).add(*measured)


def measures_of(folder: Path) -> list[dict[str, Any]]:
    """Return what a loss notes and does not minimise, in percent: mean over a training, first and last value."""
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    noted = {name: [row[name] for row in map(json.loads, lines) if name in row] for name in MEASURES}
    return [
        {"set": name, "score": 100 * float(np.mean(values)), "first": 100 * values[0], "last": 100 * values[-1]}
        for name, values in noted.items()
        if values
    ]


def parser() -> argparse.ArgumentParser:
    data = data_folder()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), metavar="TABLE")
    parser.add_argument("--arms", nargs="+", metavar="ARM", help="of the tables these alone")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--base", default="bundled:minilm")
    parser.add_argument("--corpus", default=data / "wikipedia/sentences-250k.txt.gz")
    parser.add_argument("--sentences", type=int, default=0, help="in place of --corpus, so many of all articles")
    parser.add_argument("--data", default=data / "senteval")
    parser.add_argument(
        "--raw", type=Path, default=Path("runs/raw-start/start"), help="the MLM checkpoint of raw_start.py"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/papers"), help="the folder of the models")
    parser.add_argument("--updates", type=int, default=0, help="for every arm, over its own number")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--workers", type=int, default=1, help="runs at a time; on a processor, one")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of the model that is scored")
    parser.add_argument("--minutes", type=float, default=0, help="stop what runs after so long; 0: no limit")
    parser.add_argument("--list", action="store_true", help="print what is done and what is to do, and stop")
    parser.add_argument(
        "--compare",
        nargs=2,
        metavar="ARM",
        help="print the difference of two arms of --tables, paired by seed, and stop",
    )
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    return parser


def main() -> None:
    args = parser().parse_args()
    args.stop_at = time.monotonic() + 60 * args.minutes if args.minutes else None
    if args.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if args.sentences:
        args.corpus = args.out / f"sentences-{args.sentences}.txt"
        if not args.corpus.exists():
            sentences_of(data_folder() / "wikipedia/articles.jsonl.gz", args.sentences, args.corpus)
    if args.run:
        one_run(args)
        return
    if args.compare:
        first, second = args.compare
        gap = difference(results_of(args.tables[0]).rows(), second, first)
        print(f"{second} - {first}: {gap}, seeds {', '.join(map(str, gap.seeds))}")
        return
    waiting = [
        (table, name, seed)
        for table in args.tables
        for seed in args.seeds
        for name, arm in TABLES[table].items()
        if seed in arm.seeds and (not args.arms or name in args.arms)
    ]
    for table, name, seed in list(waiting):
        done = results_of(table).has(arm=name, seed=seed, set="sts-b-dev")
        if args.list or done:
            print(f"{'done' if done else 'to do':6} {table}: {name}, seed {seed}", flush=True)
            waiting.remove((table, name, seed))
    with ThreadPoolExecutor(args.workers) as pool:
        list(pool.map(partial(run_alone, args), waiting))


def run_alone(args: argparse.Namespace, wanted: tuple[str, str, int]) -> None:
    """Run an arm with a seed in a process of its own, and print its score on STS-B dev."""
    table, name, seed = wanted
    left = args.stop_at - time.monotonic() if args.stop_at else None
    if left is not None and left <= 0:
        return
    log = args.out / "logs" / f"{table}-{slug(name)}-{seed}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        command = [sys.executable, *sys.argv, "--run", table, name, "--seed", str(seed)]
        try:
            code = subprocess.run(command, stdout=file, stderr=file, check=False, timeout=left).returncode
        except subprocess.TimeoutExpired:
            print(f"{time.strftime('%H:%M:%S')} {table}: {name}, seed {seed}: stopped by --minutes", flush=True)
            return
    dev = results_of(table).rows(arm=name, seed=seed, set="sts-b-dev")
    said = f"STS-B dev {dev[-1]['score']:.2f}" if code == 0 else f"failed ({code}): see {log}"
    print(f"{time.strftime('%H:%M:%S')} {table}: {name}, seed {seed}: {said}", flush=True)


if __name__ == "__main__":
    main()
