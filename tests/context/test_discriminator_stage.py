"""Training, resume and the held-out accuracy."""

import json
import random
import shutil
import signal

import numpy as np
import pytest
import torch

from likewise.context import (
    ContextError,
    IndexOptions,
    StatesOptions,
    build_index,
    discriminator_stage,
    read_states,
    train_discriminator,
)
from likewise.context.discriminator import Discriminator
from likewise.context.discriminator_data import ContextBatch, batch_of_chunks, negatives, split_documents
from likewise.context.discriminator_stage import CachedRanker, accuracy_of, calibrate
from likewise.context.states import SentenceReading, States
from likewise.context.training_loop import load_weights
from likewise.context.workspace import Workspace
from likewise.runs.job import JobError
from likewise.runs.progress import Stopped
from likewise.runs.whole_files import Parts


@pytest.fixture
def work(trained, tmp_path):
    """A workspace with index and word pieces."""
    shutil.copytree(trained, tmp_path / "work", ignore=shutil.ignore_patterns("discriminator"))
    return tmp_path / "work"


def test_it_learns_what_can_be_learnt(trained):
    found = Workspace(trained).require("discriminator").record
    # Documents differ by their theme; their own sentences do not differ, and one in four of the others has their theme.
    assert found["held_out"]["positive"] + found["held_out"]["other_document"] > 1.25, "chance gives 1"
    assert found["held_out"]["contexts"] > 40
    log = (trained / "discriminator" / "log.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in log]
    assert max(row["accuracy"] for row in rows) == found["chosen_by"]["accuracy"]
    files = {path.name for path in (trained / "discriminator").rglob("*") if path.is_file()}
    assert files == {
        "likewise.json",
        "log.jsonl",
        "model.safetensors",
        "contexts.npy",
    }


@torch.no_grad()
def test_the_accuracy_is_that_of_single_forward_passes(trained, tiny_options, plain_parts):
    stage, states = Workspace(trained).require("discriminator"), States(Workspace(trained))
    store, model = states.store, CachedRanker(stage, states).model
    _, _, test = split_documents(int(store.documents[-1]) + 1, tiny_options.held_out, tiny_options.seed)
    examples = batch_of_chunks(store, np.flatnonzero(np.isin(store.documents, test)))
    ids = [one.ids for one in states.of(examples.sentences)]
    sentence_part, context_part = plain_parts
    sentences = torch.stack([sentence_part(model, one) for one in ids])
    own, same, other = [], [], []
    masks = negatives(examples)
    for c, (centre, places) in enumerate(zip(examples.centres, examples.places, strict=True)):
        left = [ids[i] for i in places[: store.left] if i >= 0]
        right = [ids[i] for i in places[store.left :] if i >= 0]
        negative = (sentences @ context_part(model, left, right) <= 0).numpy()
        own.append(not negative[centre])
        for found, mask in zip((same, other), masks, strict=True):
            rows = np.flatnonzero(mask[c])
            if len(rows):
                found.append(negative[rows].mean())
    found = stage.record["held_out"]
    assert found["positive"] == pytest.approx(np.mean(own))
    assert found["same_document"] == pytest.approx(np.mean(same), abs=1e-3)
    assert found["other_document"] == pytest.approx(np.mean(other), abs=1e-3)
    assert found["accuracy"] == pytest.approx((np.mean(own) + (np.mean(same) + np.mean(other)) / 2) / 2, abs=1e-3)
    assert found["contexts"] == len(own)


def test_a_stopped_run_goes_on_to_the_same_weights(work, trained, tiny_options, monkeypatch, says):
    real = discriminator_stage.coherence_loss
    calls = []

    def stopping(*args):
        calls.append(1)
        if len(calls) == 14:
            signal.raise_signal(signal.SIGINT)
        return real(*args)

    monkeypatch.setattr(discriminator_stage, "coherence_loss", stopping)
    with says(Stopped):
        train_discriminator(work, tiny_options, quiet=True)
    assert not (work / "discriminator" / "likewise.json").exists()
    with says(JobError):
        train_discriminator(work, tiny_options.updated(hidden=14), quiet=True)
    stage = train_discriminator(work, tiny_options, quiet=True)
    steps = stage.record["steps"]
    assert len(calls) == steps, "no step was done twice"
    whole = Workspace(trained).require("discriminator")
    assert whole.record["held_out"] == stage.record["held_out"]
    for name, tensor in load_weights(whole).items():
        torch.testing.assert_close(load_weights(stage)[name], tensor, rtol=0, atol=0)


def test_a_finished_run_is_found_again(trained, tiny_options, monkeypatch):
    monkeypatch.setattr(discriminator_stage, "coherence_loss", None)  # any step would fail
    assert train_discriminator(trained, tiny_options).folder == trained / "discriminator"


def test_the_global_random_state_is_left_alone(work, tiny_options):
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    train_discriminator(work, tiny_options.updated(epochs=1), quiet=True)
    torch.testing.assert_close(torch.rand(3), expected)


def test_no_epoch_is_the_start_alone(work, trained, tiny_options):
    stage = train_discriminator(work, tiny_options.updated(epochs=0), quiet=True)
    assert (stage.record["steps"], stage.record["chosen_by"]["step"]) == (0, 0)
    first = json.loads((trained / "discriminator" / "log.jsonl").read_text().splitlines()[0])
    assert first["step"] == 0
    assert stage.record["chosen_by"]["accuracy"] == first["accuracy"]


def test_too_few_documents(tmp_path, tiny_options, tiny_base, says):
    text = tmp_path / "a.txt"
    text.write_text("The first sentence is here. The second one follows it. The third one ends it. A fourth one.\n")
    build_index(tmp_path / "work", str(text), IndexOptions(hash_bits=10), quiet=True)
    read_states(tmp_path / "work", StatesOptions(encoder=str(tiny_base), keep="pieces"), quiet=True)
    with says(ContextError):
        train_discriminator(tmp_path / "work", tiny_options)


def test_no_index(tmp_path, tiny_options, says):
    with says(ContextError):
        train_discriminator(tmp_path, tiny_options)


def test_caching_goes_on_where_it_was_stopped(work, tiny_options, monkeypatch, plain_logit, says):
    monkeypatch.setattr(discriminator_stage, "_AT_ONCE", 40)
    real, blocks = Parts.new, []

    def stopping(self, name, **facts):
        if self.folder.name == "contexts":
            blocks.append(name)
        if len(blocks) == 3:
            signal.raise_signal(signal.SIGINT)
        return real(self, name, **facts)

    monkeypatch.setattr(Parts, "new", stopping)
    options = tiny_options.updated(epochs=0)
    with says(Stopped):
        train_discriminator(work, options, quiet=True)
    stage = train_discriminator(work, options, quiet=True)
    assert blocks == [f"{begin}.npy" for begin in (0, 40, 80, 120, 160, 200)]
    states = States(Workspace(work))
    store, ranker = states.store, CachedRanker(stage, states)
    numbers = np.array([0, store.n_contexts // 2, store.n_contexts - 1])
    for number, places in zip(numbers, store.places(numbers)[1], strict=True):
        left, right = (
            [one.ids for one in states.of(side[side >= 0])] for side in (places[: store.left], places[store.left :])
        )
        logit = plain_logit(ranker.model, states.read(["A ship."])[0].ids, left, right)
        expected = torch.nn.functional.logsigmoid(logit).item()
        assert ranker.scores("A ship.", np.array([number]))[0] == pytest.approx(expected, abs=1e-5)


def words(n):
    return np.random.default_rng(0).standard_normal((n, 40)).astype(np.float32)


@torch.no_grad()
def test_calibrated_on_a_sample_it_tells_topics_before_any_training():
    # 60 documents of 6 sentences, as sums of word vectors; a document has a topic of 3 words of its own among 24.
    rng, table = random.Random(1), words(30)
    sentences, documents, centres, places = [], [], [], []
    for number in range(60):
        topic, begin = rng.sample(range(6, 30), 3), len(sentences)
        sentences += [table[rng.choices(topic, k=5)].sum(axis=0) for _ in range(6)]
        documents += [number] * 6
        for i in range(begin + 1, begin + 5):
            centres.append(i)
            places.append([i - 1, i + 1])
    batch = ContextBatch(*map(np.array, (range(len(sentences)), documents, centres, places)))
    torch.manual_seed(0)
    readings = [SentenceReading(vector, np.zeros(0, int), np.zeros((0, 40))) for vector in sentences]
    model = Discriminator(None, 40, 1, 1, rank=20)
    calibrate(model, readings, batch, seed=1)
    for j in (0, 1):
        torch.testing.assert_close(model.meet_context.weight[j * 20 : (j + 1) * 20], model.meet_sentence.weight)
    assert (model.scales > 0).all(), "likeness speaks for coherence"
    found = accuracy_of(model, lambda rows: [readings[i] for i in rows], [batch])
    assert found["positive"] > 0.7
    assert found["other_document"] > 0.7
