"""Equation 3 in batches and from caches against a literal loop over sentences and contexts."""

import math
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from likewise.context.chunks import Context
from likewise.context.generators import Generators, batch_of
from likewise.context.options import ScoreOptions
from likewise.context.score import ContextScorer
from likewise.context.subwords import TASKS, Example
from likewise.context.workspace import ContextError
from likewise.runs.progress import Progress

SENTENCES = [
    "The cat sleeps there all day.",
    "Once a goose came to the harbour, and every day the goose looked for food.",
    "",
    "A dog!",
]


class Counting(Progress):
    """Keeps its bars."""

    @contextmanager
    def bar(self, what, total=None, **more):
        with super().bar(what, total, **more) as bar:
            self.bars = [*getattr(self, "bars", []), bar]
            yield bar


class ToyDiscriminator:
    """log p from the lengths of what it is given; counts what it is asked."""

    def __init__(self):
        self.asked = 0

    def coherence(self, sentences, contexts):
        self.asked += 1
        return np.array([[self.one(s, c) for c in contexts] for s in sentences])

    @staticmethod
    def one(sentence, context):
        return -math.log1p(math.exp(len(sentence) / 50 - len(context.left[-1] if context.left else "") / 30))


@pytest.fixture(scope="module")
def contexts(chunks):
    found = [Context(i, 1, c.sentences[:1], c.sentences[2 : 2 + i % 3]) for i, c in enumerate(chunks[:7])]
    # The same right side as another, no left side, and a long one.
    return [*found, Context(9, 2, (), found[1].right), Context(10, 3, chunks[9].sentences[:3], ("Yes.",))]


def build(options, vocabulary, **changes):
    torch.manual_seed(3)
    built = Generators(options.updated(**changes), vocabulary).eval()
    for name, part in built.named_parameters():
        torch.nn.init.normal_(part, std=1.0 if "sentences" in name else 0.2)
    return built


def literal_terms(generators, discriminator, sentence, context):
    """The four terms of one sentence in one context, each network run on this example alone."""
    pieces = generators.cutter.examples([Example(context.left, sentence, context.right)])
    with torch.inference_mode():
        logs = generators.log_probabilities(batch_of(pieces, generators.vocabulary.pad))
    means = [float(logs[task].mean()) for task in TASKS]
    return [float(discriminator.coherence([sentence], [context])[0, 0]), *means]


@pytest.mark.parametrize(
    "changes",
    [{}, {"networks": "three"}, {"late": 0}, {"networks": "three", "softmax": "full"}],
    ids=str,
)
@pytest.mark.parametrize("sizes", [(4096, 256), (40, 2)], ids=str)
def test_all_cells_are_the_literal_double_loop(tiny_generators, vocabulary, contexts, changes, sizes):
    generators, toy = build(tiny_generators, vocabulary, **changes), ToyDiscriminator()
    options = ScoreOptions(batch_tokens=sizes[0], contexts_at_once=sizes[1], precision="fp32")
    scorer = ContextScorer(generators, toy, options)
    cells = np.array([(s, c) for s in range(len(SENTENCES)) for c in range(len(contexts))])
    found = scorer.terms(SENTENCES, contexts, cells)
    expected = [literal_terms(generators, toy, SENTENCES[s], contexts[c]) for s, c in cells]
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert (found < 0).all()
    assert np.ptp(found, axis=0).min() > 0.05  # the cells do differ


def test_any_cells_in_any_order_repeated_ones_too(tiny_generators, vocabulary, contexts):
    generators, toy = build(tiny_generators, vocabulary), ToyDiscriminator()
    scorer = ContextScorer(generators, toy, ScoreOptions(contexts_at_once=3, precision="fp32"))
    rng = np.random.default_rng(0)
    cells = np.stack([rng.integers(4, size=30), rng.integers(len(contexts), size=30)], axis=1)
    progress = Counting(quiet=True)
    found = scorer.terms(SENTENCES, contexts, cells, progress=progress)
    expected = [literal_terms(generators, toy, SENTENCES[s], contexts[c]) for s, c in cells]
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert progress.bars[0].done == progress.bars[0].total == 30
    assert scorer.terms(SENTENCES, contexts, cells[:0]).shape == (0, 4)


def test_scores_are_the_weighted_terms_and_a_weight_of_zero_costs_nothing(tiny_generators, vocabulary, contexts):
    generators, toy = build(tiny_generators, vocabulary), ToyDiscriminator()
    all_terms = ContextScorer(generators, toy, ScoreOptions(precision="fp32")).terms(
        ["A dog!"], contexts, np.array([(0, 0), (0, 3)])
    )
    toy.asked = 0
    scorer = ContextScorer(generators, None, ScoreOptions(form="paper", weights=(0, 0.5, 0.0, 0.2), precision="fp32"))
    found = scorer("A dog!", contexts)
    assert found.shape == (len(contexts),)
    np.testing.assert_allclose(found[[0, 3]], all_terms @ [0, 0.5, 0, 0.2], atol=1e-6)
    assert toy.asked == 0


def test_auto_follows_the_processor_and_bfloat16_is_near(tiny_generators, vocabulary, contexts, any_processor):
    generators, toy = build(tiny_generators, vocabulary), ToyDiscriminator()
    auto, exact = (ContextScorer(generators, toy, ScoreOptions(precision=name)) for name in ("auto", "fp32"))
    found, expected = auto(SENTENCES[0], contexts), exact(SENTENCES[0], contexts)
    assert np.array_equal(found, expected) is ("bf16" not in any_processor)
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_a_text_is_encoded_once_for_all_that_read_it(tiny_generators, vocabulary, contexts, monkeypatch):
    generators = build(tiny_generators, vocabulary)
    network = generators.network("centre")
    real, texts = network.encode, []
    monkeypatch.setattr(network, "encode", lambda batch: texts.extend(batch.mask.sum(1).tolist()) or real(batch))
    scorer = ContextScorer(generators, ToyDiscriminator())
    cells = np.array([(s, c) for s in range(4) for c in range(len(contexts))])
    scorer.terms(SENTENCES, contexts, cells)
    distinct = len(SENTENCES) + len({c.left for c in contexts}) + len({c.right for c in contexts})
    assert len(texts) == distinct


def test_errors(tiny_generators, vocabulary):
    with pytest.raises(ContextError, match="no discriminator"):
        ContextScorer(build(tiny_generators, vocabulary), None)
