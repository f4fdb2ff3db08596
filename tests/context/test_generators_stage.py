"""A run at toy size: it learns, it is resumed to the same weights, and its errors come first."""

import json
import shutil
import signal

import pytest
import torch

from likewise.context import ContextError, IndexOptions, StatesOptions, build_index, read_states, train_generators
from likewise.context.generators import Generators
from likewise.context.training_loop import load_weights
from likewise.context.workspace import Workspace
from likewise.runs.job import JobError
from likewise.runs.progress import Stopped


@pytest.fixture
def work(trained, tmp_path):
    """A workspace with word pieces alone."""
    shutil.copytree(trained, tmp_path / "work", ignore=shutil.ignore_patterns("discriminator"))
    return tmp_path / "work"


def test_a_transformer_learns_from_the_right_context(work, tiny_generators):
    options = tiny_generators.updated(width=32, feed_forward=64, learning_rate=1e-2, warmup_steps=10, max_steps=150)
    record = train_generators(work, options, quiet=True).record
    assert (record["steps"], record["status"]) == (150, "finished")
    found = record["perplexity"]
    for task in ("centre", "left", "right"):
        assert found["right"][task] < found["shuffled"][task]
    rows = [json.loads(line) for line in (work / "generators" / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 150]
    assert rows[1]["centre"] < rows[0]["centre"] / 4


@pytest.mark.parametrize(("reads", "at"), [("states", 12), ("text", 11)])
def test_resumed_is_the_same_as_never_stopped(frozen, work, tiny_generators, tmp_path, monkeypatch, reads, at, says):
    """An update has two batches: a stop in the first of them does not wait for the second."""
    if reads == "states":
        shutil.rmtree(work)
        shutil.copytree(frozen, work, ignore=shutil.ignore_patterns("generators", "discriminator"))
    shutil.copytree(work, tmp_path / "whole")
    options = tiny_generators.updated(
        reads=reads, dropout=0.1, max_steps=12, eval_steps=4, batch_size=16, accumulation=2
    )
    whole = train_generators(tmp_path / "whole", options, quiet=True).record
    real, calls = Generators.loss, []

    def stopping(self, texts):
        calls.append(1)
        if len(calls) == at:
            signal.raise_signal(signal.SIGINT)
        return real(self, texts)

    monkeypatch.setattr(Generators, "loss", stopping)
    with says(Stopped):
        train_generators(work, options, quiet=True)
    with says(JobError):
        train_generators(work, options.updated(seed=2), quiet=True)
    torch.manual_seed(99)
    resumed = train_generators(work, options, quiet=True).record
    assert len(calls) == 24 + at % 2, "no update was done twice"
    assert resumed["perplexity"] == whole["perplexity"]
    one, other = (load_weights(Workspace(folder).require("generators")) for folder in (tmp_path / "whole", work))
    assert all(torch.equal(one[name], other[name]) for name in one)
    logs = [(folder / "generators" / "log.jsonl").read_text().splitlines() for folder in (tmp_path / "whole", work)]
    assert [json.loads(line)["step"] for line in logs[1]] == [0, 4, 8, 12]
    assert [json.loads(line)["loss"] for line in logs[0]] == [json.loads(line)["loss"] for line in logs[1]]


def test_a_diverged_run_is_an_error(work, tiny_generators, says):
    options = tiny_generators.updated(learning_rate=1e30, warmup_steps=0, max_grad_norm=0, max_steps=20)
    with says(ContextError):
        train_generators(work, options, quiet=True)


def test_errors_come_before_training(work, tiny_generators, tmp_path, tiny_base, says):
    with says(ContextError):
        train_generators(work, tiny_generators.updated(reads="states"), quiet=True)
    text = tmp_path / "a.txt"
    text.write_text("The first sentence is here. The second one follows it. The third one ends it. A fourth one.\n")
    build_index(tmp_path / "small", str(text), IndexOptions(hash_bits=10), quiet=True)
    read_states(tmp_path / "small", StatesOptions(encoder=str(tiny_base), keep="pieces"), quiet=True)
    with says(ContextError):
        train_generators(tmp_path / "small", tiny_generators, quiet=True)
