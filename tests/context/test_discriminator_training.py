"""Training, resume and the held-out accuracy."""

import json
import shutil
import signal

import numpy as np
import pytest
import torch

from likewise.context import ContextError, IndexOptions, build_index, discriminator, train_discriminator
from likewise.context.discriminator import load_discriminator
from likewise.context.indexing import open_store
from likewise.context.selection import CachedRanker
from likewise.context.workspace import Workspace
from likewise.runs.job import JobError
from likewise.runs.stopping import Stopped


@pytest.fixture
def work(indexed, tmp_path):
    shutil.copytree(indexed, tmp_path / "work")
    return tmp_path / "work"


def test_it_learns_what_can_be_learnt(trained):
    found = Workspace(trained).require("discriminator").record
    # Documents differ by their theme; their own sentences do not differ, and one in four of the others has their theme.
    assert found["held_out"]["positive"] + found["held_out"]["other_document"] > 1.25, "chance gives 1"
    assert found["held_out"]["examples"] > 80
    log = (trained / "discriminator" / "log.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in log]
    assert max(row["accuracy"] for row in rows) == found["chosen_by"]["accuracy"]
    files = {path.name for path in (trained / "discriminator").rglob("*") if path.is_file()}
    assert files == {
        "likewise.json",
        "log.jsonl",
        "model.safetensors",
        "config.json",
        "contexts.npy",
        "tokenizer.json",
    }


def test_the_accuracy_is_that_of_single_forward_passes(trained, tiny_options, plain_logit):
    from likewise.context.discriminator_data import batch_of_chunks, draw_negatives, split_documents

    stage = Workspace(trained).require("discriminator")
    store = open_store(Workspace(trained).require("index"))
    ranker = CachedRanker(stage.folder, store)
    _, _, test = split_documents(int(store.documents[-1]) + 1, tiny_options.held_out, tiny_options.seed)
    examples = batch_of_chunks(store, np.flatnonzero(np.isin(store.documents, test)))
    drawn, _ = draw_negatives(examples, tiny_options.seed)
    flat = [sentence for part in store.sentences() for sentence in part]
    texts = [flat[i] for i in examples.sentences]
    right = []
    for centre, places, negative in zip(examples.centres, examples.places, drawn, strict=True):
        left = ranker.encode([texts[i] for i in places[: store.left] if i >= 0])
        right_side = ranker.encode([texts[i] for i in places[store.left :] if i >= 0])
        for row, fits in ((centre, True), (negative, False)):
            logit = plain_logit(ranker.model, ranker.encode([texts[row]])[0], left, right_side)
            right.append((logit.item() > 0) == fits)
    assert stage.record["held_out"]["accuracy"] == pytest.approx(np.mean(right))
    assert stage.record["held_out"]["examples"] == len(right)


def test_a_stopped_run_goes_on_to_the_same_weights(work, trained, tiny_options, monkeypatch):
    real = discriminator.coherence_loss
    calls = []

    def stopping(*args):
        calls.append(1)
        if len(calls) == 14:
            signal.raise_signal(signal.SIGINT)
        return real(*args)

    monkeypatch.setattr(discriminator, "coherence_loss", stopping)
    with pytest.raises(Stopped, match="after step 14 of"):
        train_discriminator(work, tiny_options, quiet=True)
    assert not (work / "discriminator" / "likewise.json").exists()
    with pytest.raises(JobError, match="hidden 24, not 14"):
        train_discriminator(work, tiny_options.updated(hidden=14), quiet=True)
    stage = train_discriminator(work, tiny_options, quiet=True)
    steps = stage.record["steps"]
    assert len(calls) == steps, "no step was done twice"
    whole = Workspace(trained).require("discriminator")
    assert whole.record["held_out"] == stage.record["held_out"]
    for name, tensor in load_discriminator(whole.folder)[0].state_dict().items():
        torch.testing.assert_close(load_discriminator(stage.folder)[0].state_dict()[name], tensor, rtol=0, atol=0)


def test_a_finished_run_is_found_again(trained, tiny_options, monkeypatch):
    monkeypatch.setattr(discriminator, "coherence_loss", None)  # any step would fail
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


def test_too_few_documents(tmp_path, tiny_options):
    text = tmp_path / "a.txt"
    text.write_text("The first sentence is here. The second one follows it. The third one ends it. A fourth one.\n")
    build_index(tmp_path / "work", str(text), IndexOptions(hash_bits=10), quiet=True)
    with pytest.raises(ContextError, match="1 document: four or more"):
        train_discriminator(tmp_path / "work", tiny_options)


def test_no_index(tmp_path, tiny_options):
    with pytest.raises(ContextError, match="holds no index: make it first with 'likewise context index"):
        train_discriminator(tmp_path, tiny_options)


def test_caching_goes_on_where_it_was_stopped(work, tiny_options, monkeypatch, plain_logit):
    from likewise.context import selection

    monkeypatch.setattr(selection, "_AT_ONCE", 40)
    real, blocks = selection.batch_of_chunks, []

    def stopping(store, chunks):
        blocks.append(int(chunks[0]))
        if len(blocks) == 3:
            signal.raise_signal(signal.SIGINT)
        return real(store, chunks)

    monkeypatch.setattr(selection, "batch_of_chunks", stopping)
    options = tiny_options.updated(epochs=0)
    with pytest.raises(Stopped, match="after 3 of 6 blocks of contexts"):
        train_discriminator(work, options, quiet=True)
    stage = train_discriminator(work, options, quiet=True)
    assert blocks == [0, 40, 80, 120, 160, 200]
    store = open_store(Workspace(work).require("index"))
    ranker = CachedRanker(stage.folder, store)
    numbers = np.array([0, store.n_contexts // 2, store.n_contexts - 1])
    for number, context in zip(numbers, store.contexts(numbers), strict=True):
        logit = plain_logit(
            ranker.model,
            ranker.encode(["A ship."])[0],
            ranker.encode(list(context.left)),
            ranker.encode(list(context.right)),
        )
        expected = torch.nn.functional.logsigmoid(logit).item()
        assert ranker.scores("A ship.", np.array([number]))[0] == pytest.approx(expected, abs=1e-5)
