"""A run at toy size: it learns, it is resumed to the same weights, and its errors come first."""

import json
import signal

import pytest
import torch

from likewise.context.generator_training import _updates, fit_generators, split
from likewise.context.generators import Generators
from likewise.context.subwords import examples_of
from likewise.context.workspace import ContextError
from likewise.runs.job import JobError, open_job
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress
from likewise.runs.stopping import Stopped
from likewise.training.batching import LengthBatchSampler


@pytest.fixture(scope="module")
def examples(chunks):
    return list(examples_of(chunks))


def fit(examples, out, options, vocabulary=None):
    with open_job(out, Plan("toy", options.to_dict())) as job:
        return job.finish(fit_generators(job, examples, options, vocabulary, Progress(quiet=True)))


def test_a_toy_run_ends_below_unigram_and_trigram(examples, tiny_generators, tmp_path, ngrams):
    options = tiny_generators.updated(width=32, feed_forward=64, learning_rate=1e-2, warmup_steps=10, max_steps=120)
    record = fit(examples, tmp_path / "run", options)
    assert (record["steps"], record["status"]) == (120, "finished")
    loaded = Generators.load(tmp_path / "run")
    assert not loaded.training
    found = ngrams.ngrams(loaded.cutter, *split(examples, options.held_out, options.seed))
    # A context tells the animal and the place, which two words of history cannot.
    assert record["perplexity"]["all"] < found["trigram"]["all"] < found["unigram"]["all"]
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 120]
    assert rows[-1]["perplexity_all"] == record["perplexity"]["all"]


def test_resumed_is_the_same_as_never_stopped(examples, tiny_generators, tmp_path, vocabulary, monkeypatch):
    # 5 updates an epoch: it is stopped inside the second epoch and ends in the third.
    examples = examples[:60]
    options = tiny_generators.updated(dropout=0.1, max_steps=12, eval_steps=4)
    whole = fit(examples, tmp_path / "whole", options, vocabulary)
    real, calls = Generators.loss, []

    def stopping(self, batch):
        calls.append(1)
        if len(calls) == 6:
            signal.raise_signal(signal.SIGINT)
        return real(self, batch)

    monkeypatch.setattr(Generators, "loss", stopping)
    with pytest.raises(Stopped, match=r"after step 6 of 12\. Run the same command"):
        fit(examples, tmp_path / "half", options, vocabulary)
    with pytest.raises(JobError, match="seed 1, not 2"):
        fit(examples, tmp_path / "half", options.updated(seed=2), vocabulary)
    torch.manual_seed(99)
    resumed = fit(examples, tmp_path / "half", options, vocabulary)
    assert len(calls) == 12, "no step was done twice"
    assert resumed["perplexity"] == whole["perplexity"]
    one, other = (Generators.load(tmp_path / name).state_dict() for name in ("whole", "half"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    logs = [(tmp_path / name / "log.jsonl").read_text().splitlines() for name in ("whole", "half")]
    assert [json.loads(line)["step"] for line in logs[1]] == [0, 4, 8, 12]
    assert [json.loads(line)["loss"] for line in logs[0]] == [json.loads(line)["loss"] for line in logs[1]]


def test_a_diverged_run_is_an_error(examples, tiny_generators, tmp_path, vocabulary):
    options = tiny_generators.updated(learning_rate=1e30, warmup_steps=0, max_grad_norm=0, max_steps=20)
    with pytest.raises(ContextError, match="the loss of the generators is nan"):
        fit(examples, tmp_path / "run", options, vocabulary)


def test_documents_are_held_out_whole(examples):
    training, held_out = split(examples, 31, seed=3)
    # Two examples a story.
    assert len(held_out) == 32
    assert len(training) == len(examples) - 32
    assert {e.document for e in training}.isdisjoint(e.document for e in held_out)
    assert split(examples, 31, seed=3)[1] == held_out != split(examples, 31, seed=4)[1]


def test_errors_come_before_training(examples, tiny_generators, tmp_path):
    with pytest.raises(ContextError, match="4 training examples left after 20 held out"):
        fit(examples[:24], tmp_path / "run", tiny_generators)
    with pytest.raises(ContextError, match="0 training examples"):
        fit([], tmp_path / "run", tiny_generators)
    assert not (tmp_path / "run").exists()


def test_an_epoch_has_an_order_of_its_own():
    lengths = [(7 * i) % 13 for i in range(44)]
    updates = _updates(LengthBatchSampler(lengths, 8, seed=1), 2)
    epochs = [[next(updates) for _ in range(3)] for _ in range(2)]
    assert [[len(update) for update in epoch] for epoch in epochs] == [[2, 2, 1]] * 2
    assert epochs[0] != epochs[1]
    again = _updates(LengthBatchSampler(lengths, 8, seed=1), 2)
    assert [next(again) for _ in range(3)] == epochs[0]
