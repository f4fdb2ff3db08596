"""The loss and the examples, against loops."""

import math

import numpy as np
import pytest
import torch

from likewise.context.discriminator import coherence_loss
from likewise.context.discriminator_data import (
    batch_of_chunks,
    epoch_batches,
    negatives,
    split_documents,
    training_units,
)
from likewise.context.index import Chunk, ChunkStore, write_chunks


@pytest.fixture
def store(tmp_path):
    rng = np.random.default_rng(1)
    chunks = [Chunk(i // 2, tuple(f"{i}.{j}" for j in range(rng.integers(3, 7)))) for i in range(40)]
    write_chunks(tmp_path / "chunks.arrow", chunks)
    return ChunkStore(tmp_path / "chunks.arrow", left=2, right=1)


def test_documents_are_split_without_overlap():
    parts = split_documents(57, 0.2, seed=3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(57))
    assert [len(part) for part in parts] == [45, 6, 6]
    assert split_documents(57, 0.2, seed=4)[1].tolist() != parts[1].tolist()


def test_units_hold_whole_documents_or_parts_of_one(store):
    documents = np.array([3, 8, 9])
    units = training_units(store, documents, most=1000)
    assert [unit.tolist() for unit in units] == [[6, 7], [16, 17], [18, 19]]
    cut = training_units(store, documents, most=5)
    assert [unit.tolist() for unit in cut] == [[6], [7], [16], [17], [18], [19]]


def test_batches_cover_an_epoch_and_differ_between_epochs(store):
    units = training_units(store, np.arange(20), most=1000)
    epochs = [list(epoch_batches(store, units, 30, seed=1, epoch=epoch)) for epoch in (0, 1, 0)]
    for batch in epochs[0]:
        assert store.lengths[batch].sum() >= 30
    taken = np.concatenate(epochs[0]).tolist()
    assert len(taken) == len(set(taken))
    assert store.lengths.sum() - store.lengths[taken].sum() < 30, "only a last, smaller batch is left out"
    assert [b.tolist() for b in epochs[0]] == [b.tolist() for b in epochs[2]]
    assert [b.tolist() for b in epochs[0]] != [b.tolist() for b in epochs[1]]
    assert len(list(epoch_batches(store, units, 10_000, seed=1, epoch=0))) == 1
    every = np.concatenate(list(epoch_batches(store, units, 30, seed=1, epoch=0, all_of=True)))
    assert sorted(every.tolist()) == list(range(40))


def test_examples_are_those_of_the_store(store):
    chunks = np.array([30, 4, 5])
    examples = batch_of_chunks(store, chunks)
    flat = store.texts()
    texts = [flat[i] for i in examples.sentences]
    assert texts == [sentence for i in chunks for sentence in store[i].sentences]
    assert examples.documents.tolist() == [i // 2 for i in chunks for _ in store[i].sentences]
    around = store.around(store.contexts_of(chunks))
    assert len(around) == len(examples.centres)
    for expected, centre, places in zip(around, examples.centres, examples.places, strict=True):
        assert [texts[centre], *(texts[i] for i in places if i >= 0)] == expected


def test_negatives(store):
    examples = batch_of_chunks(store, np.arange(40))
    same, other = negatives(examples)
    for c, (centre, places) in enumerate(zip(examples.centres, examples.places, strict=True)):
        for s in range(len(examples.sentences)):
            mine = examples.documents[s] == examples.documents[centre]
            assert same[c, s] == (mine and s != centre and s not in places)
            assert other[c, s] == (not mine)


def test_the_loss_is_the_mean_over_what_could_be_drawn(store):
    examples = batch_of_chunks(store, np.array([0, 1, 2, 20, 21]))
    same, other = negatives(examples)
    same[0] = False  # a context with no negative of its own document
    other[1] = False
    logits = torch.randn(same.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 3

    def sigmoid(value: float) -> float:
        return 1 / (1 + math.exp(-value))

    expected = 0.0
    for c, centre in enumerate(examples.centres):
        positive = -math.log(sigmoid(logits[c, centre].item()))
        kinds = []
        for mask in (same, other):
            losses = [-math.log(1 - sigmoid(logits[c, s].item())) for s in np.flatnonzero(mask[c])]
            if losses:
                kinds.append(sum(losses) / len(losses))
        expected += 0.5 * positive + 0.5 * sum(kinds) / len(kinds)
    found = coherence_loss(logits, torch.from_numpy(examples.centres), torch.from_numpy(same), torch.from_numpy(other))
    assert found.item() == pytest.approx(expected / len(examples.centres))
