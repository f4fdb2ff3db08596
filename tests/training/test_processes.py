"""Two processes give what one gives: the same losses and gradients, and the same training."""

import json
import os
import random
import runpy
import socket
from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise.runs.job import JobError

WORKER = Path(__file__).with_name("two_processes.py")
PLAIN = {
    "dropout": 1e-12,  # both views are the same, so that no chance is in the losses
    "triplet_min_words": 15,
    "triplet_weight": 1.0,
    "triplet_margin": 0.2,
    "pooling": "mean",  # [CLS] vectors of random weights are nearly parallel: angles of rounding errors
}
CASES = {
    "arccse": ("arccse", PLAIN),
    "simcse": ("simcse", PLAIN | {"triplet_weight": 0.0}),
    "esimcse": ("esimcse", {"queue": 2.5}),
    "consert": ("consert", {"first": "none", "second": "none", "dropout": 0.1}),
    "sncse": ("sncse", {"weight": 1.0}),
    "sncse, positive": ("sncse", {"negation": "positive"}),
    "sncse, hard negative": ("sncse", {"negation": "hard-negative"}),
    "sncse, opposites": ("sncse", {"opposite_weight": 1.0, "keep_weight": 1.0, "head": False}),
    "mask distillation": ("mask-distillation", {}),
    "gclsr": ("gclsr", {"augmentation": "edits", "projection": 32, "bottleneck": 16, "filters": 8}),
    "tsdae": ("tsdae", {}),
    "ct": ("ct", {"negatives": 3}),
    "light": ("light", {"words": 20, "hidden": 64}),
}
"""Every loss: name to recipe and options. Parts of some have unevenly many rows in the two processes."""
TRAINING = PLAIN | {
    "head": False,
    "max_steps": 12,
    "eval_steps": 4,
    "sam_rho": 0.05,
    "select_by": "held-out",
    "held_out": 40,
    "learning_rate": 3e-4,
    "precision": "fp32",
    "triplet_limit": 0,  # a limit is that of each process
}


@pytest.fixture(scope="module")
def runs(sentences, corpus_file, tiny_base, new_process, tmp_path_factory):
    """The folder in which one process and then two have measured the losses and trained."""
    folder = tmp_path_factory.mktemp("processes")
    rng = random.Random(0)
    rows = [
        {"sentence": text, "words": len(text.split()), "view": rng.choice(sentences)}
        | {"negation": text.replace(" sees ", " does not see ").replace(" big ", " not big ") if i % 3 else ""}
        for i, text in enumerate(sentences[:32])
    ]
    words = sorted({word for one in sentences for word in one.lower().replace(".", " .").split()})
    vectors = np.random.default_rng(0).normal(size=(len(words), 12))
    lines = [f"{word} {' '.join(f'{x:.4f}' for x in row)}\n" for word, row in zip(words, vectors, strict=True)]
    (folder / "words.txt").write_text("".join(lines))
    given = {"rows": rows, "cases": CASES, "base": str(tiny_base), "words": str(folder / "words.txt")}
    given |= {"corpus": str(corpus_file), "recipe": "arccse", "options": TRAINING}
    (folder / "given.json").write_text(json.dumps(given))
    main = runpy.run_path(str(WORKER))["main"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    both = [new_process(one_of_two, folder, number, port) for number in range(2)]
    main(folder)
    for process in both:
        process.join(300)
        assert process.exitcode == 0
    return folder


def one_of_two(folder: Path, number: int, port: int) -> None:
    """Do what torchrun has each of two processes do: it describes them in the environment."""
    os.environ |= {"WORLD_SIZE": "2", "RANK": str(number), "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": str(number)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "LIKEWISE_CACHE": str(folder / "cache")}
    runpy.run_path(str(WORKER))["main"](folder)


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient_of_two_processes_are_those_of_the_whole_batch(runs, name):
    one, two = (json.loads((runs / f"losses-{count}.json").read_text())[name] for count in (1, 2))
    for step in (0, 1):
        assert two[f"loss {step}"] == pytest.approx(one[f"loss {step}"], rel=1e-5, abs=1e-6)
        largest = one[f"largest {step}"]
        assert largest > 0
        np.testing.assert_allclose(two[f"gradient {step}"], one[f"gradient {step}"], atol=1e-5 * max(1.0, largest))


def test_a_training_of_two_processes_has_the_losses_and_scores_of_one_with_the_same_batch(runs):
    logs = [
        [json.loads(line) for line in (runs / f"run-{count}" / "log.jsonl").read_text().splitlines()]
        for count in (1, 2)
    ]
    for key in ("loss", "eval_held_out_separation"):
        one, two = ([line[key] for line in log if key in line] for log in logs)
        assert len(one) >= 3
        np.testing.assert_allclose(two, one, rtol=1e-4)
    losses = [line["loss"] for line in logs[0] if "loss" in line]
    assert len(losses) == 12
    assert losses[-1] < losses[0] - 0.03  # it learns: the batches of later updates are compared on other weights


def test_another_number_of_processes_is_refused(runs, corpus_file, tiny_base, says):
    with says(JobError):
        likewise.train(
            "arccse", corpus_file, base=tiny_base, out=runs / "run-2", batch_size=32, chunk=7, quiet=True, **TRAINING
        )
