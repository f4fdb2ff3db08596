"""The start: the last state is a weighted bag of words, and the score a similarity that knows its threshold."""

import math
import random

import numpy as np
import pytest
import torch

from likewise.context.discriminator import Discriminator
from likewise.context.discriminator_data import ContextBatch, draw_negatives
from likewise.context.discriminator_start import begin_as_bag_of_words, begin_vectors, calibrate, word_vectors_of
from likewise.context.subwords import Vocabulary

FREQUENCIES = np.array([0.0, 0.0, 0.3, 0.2, *[0.5 / 26] * 26])


def begun(head: str = "product") -> Discriminator:
    torch.manual_seed(0)
    model = Discriminator(30, 12, 40, 1, 1, head, rank=20)
    vectors = {i: np.random.default_rng(i).standard_normal(5).astype(np.float32) for i in range(2, 20)}
    begin_as_bag_of_words(model, vectors, FREQUENCIES)
    return model


@torch.no_grad()
def test_the_last_state_is_the_weighted_sum_of_the_words():
    model = begun()
    ids = [7, 2, 25, 3]
    keep, tell = 1 / (1 + math.exp(-4)), 1 / (1 + math.exp(-2))
    project = model.forward_lstm.weight_ih_l0[80:120, :-1]
    cell = torch.zeros(40)
    for i in ids:
        weight = 1e-3 / (1e-3 + FREQUENCIES[i])
        cell = keep * cell + weight * torch.tanh(project @ model.embed.weight[i, :-1])
    torch.testing.assert_close(model.represent([ids])[0, :40], tell * torch.tanh(cell))
    assert model.embed.weight[0].abs().sum() == 0
    assert (model.forward_lstm.weight_ih_l0[80:120] - model.backward_lstm.weight_ih_l0[80:120]).abs().max() > 0.1


def topics() -> tuple[list[list[int]], ContextBatch]:
    """60 documents of 6 sentences; a document has a topic of 3 words of its own among 12."""
    rng = random.Random(1)
    sentences, documents, centres, places = [], [], [], []
    for number in range(60):
        words = rng.sample(range(6, 30), 3)
        begin = len(sentences)
        sentences += [[2, *rng.choices(words, k=5), 3] for _ in range(6)]
        documents += [number] * 6
        for i in range(begin + 1, begin + 5):
            centres.append(i)
            places.append([i - 1, i + 1])
    return sentences, ContextBatch(*map(np.array, (range(len(sentences)), documents, centres, places)))


@torch.no_grad()
def test_calibrated_on_a_sample_it_tells_topics_before_any_training():
    model = begun()
    sentences, examples = topics()
    calibrate(model, sentences, examples, seed=1)
    for j in (0, 1):
        torch.testing.assert_close(model.meet_context.weight[j * 20 : (j + 1) * 20], model.meet_sentence.weight)
    assert (model.scales > 0).all(), "likeness speaks for coherence"
    drawn, of_document = draw_negatives(examples, seed=7)
    h = model.represent(sentences)
    contexts = model.context_part(h, torch.from_numpy(examples.places))[~of_document]
    parts = model.sentence_part(h)
    own = model.combine_pairs(parts[examples.centres[~of_document]], contexts) > 0
    other = model.combine_pairs(parts[drawn[~of_document]], contexts) <= 0
    assert own.float().mean() > 0.7
    assert other.float().mean() > 0.7


def test_the_linear_head_has_nothing_to_calibrate():
    model = begun("linear")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    calibrate(model, *topics(), seed=1)
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, before[name])


def test_sub_words_that_are_words_get_their_vectors(tmp_path):
    pytest.importorskip("gensim")
    (tmp_path / "vectors.txt").write_text("cat 1 2 3\nunheard 7 7 7\ndog 4 5 6\n")
    vocabulary = Vocabulary.train(["a cat and a dog"] * 20, 300)
    vectors = word_vectors_of(vocabulary, str(tmp_path / "vectors.txt"))
    (cat,), (dog,) = vocabulary.encode_batch(["cat", "dog"])
    assert {i: vector.tolist() for i, vector in vectors.items()} == {cat: [1, 2, 3], dog: [4, 5, 6]}
    model = Discriminator(len(vocabulary), 4, 5, 1, 1, "product", 5)
    before = model.embed.weight.detach().clone()
    begin_vectors(model, vectors)
    assert model.embed.weight[cat, :3].tolist() == [1, 2, 3]
    changed = (model.embed.weight != before).any(dim=1).nonzero().flatten().tolist()
    assert sorted(changed) == sorted([cat, dog])
