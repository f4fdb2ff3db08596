"""The start of the head: a similarity of sentence and context that knows its threshold."""

import random

import numpy as np
import torch

from likewise.context.discriminator import Discriminator
from likewise.context.discriminator_data import ContextBatch, draw_negatives
from likewise.context.discriminator_start import calibrate

WORDS = np.random.default_rng(0).standard_normal((30, 40)).astype(np.float32)


def begun(head: str = "product") -> Discriminator:
    torch.manual_seed(0)
    return Discriminator(None, 40, 1, 1, head, rank=20)


def topics() -> tuple[np.ndarray, ContextBatch]:
    """60 documents of 6 sentences, as sums of word vectors; a document has a topic of 3 words of its own among 24."""
    rng = random.Random(1)
    sentences, documents, centres, places = [], [], [], []
    for number in range(60):
        words = rng.sample(range(6, 30), 3)
        begin = len(sentences)
        sentences += [WORDS[rng.choices(words, k=5)].sum(axis=0) for _ in range(6)]
        documents += [number] * 6
        for i in range(begin + 1, begin + 5):
            centres.append(i)
            places.append([i - 1, i + 1])
    return np.stack(sentences), ContextBatch(*map(np.array, (range(len(sentences)), documents, centres, places)))


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
