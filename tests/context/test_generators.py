"""Equation 2 against a loop over single examples and single tokens; saving; perplexity."""

import math

import pytest
import torch

from likewise.context.generators import Generators, batch_of, perplexity
from likewise.context.subwords import SOURCES, TASKS, Example, ExamplePieces, Piece, Vocabulary, examples_of, pad
from likewise.context.workspace import ContextError


@pytest.fixture(scope="module")
def examples(chunks):
    return [*examples_of(chunks[:4], 2, 2), Example((), "The cat sleeps.", ("So it goes.",))]


def build(options, vocabulary, **changes):
    torch.manual_seed(1)
    built = Generators(options.updated(**changes), vocabulary).eval()
    for name, part in built.named_parameters():
        if "sentences" in name:  # large enough that a wrong place is seen
            torch.nn.init.normal_(part)
    return built


def one_token_at_a_time(distribution, generators, pieces: ExamplePieces, task) -> list[float]:
    """log p of each token: one example, no padding, no cache, the target cut off behind the token."""
    network, pad_id = generators.network(task), generators.vocabulary.pad
    sources = [pieces[side] for side in SOURCES[task]]
    found = []
    target = pieces[task]
    for t in range(len(target)):
        memory = torch.cat([network.remember(network.encode(pad([source], pad_id))) for source in sources], dim=1)
        # The token itself is hidden: the end token stands in its place.
        ids = (*target.ids[:t], generators.vocabulary.eos)
        prefix = pad([Piece(ids, target.tokens[: t + 1], target.sentences[: t + 1])], pad_id)
        started = network.start(prefix, generators.first(task))
        last = network.finish(started, memory, torch.ones(memory.shape[:2], dtype=torch.bool))
        found.append(float(distribution(network, last[0, -1:])[0, target.ids[t]]))
    return found


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"networks": "three"},
        {"late": 0},
        {"networks": "three", "softmax": "full"},
    ],
    ids=str,
)
def test_teacher_forcing_in_a_batch_is_the_loop_over_tokens(
    distribution, tiny_generators, vocabulary, examples, changes
):
    generators = build(tiny_generators, vocabulary, **changes)
    pieces = generators.cutter.examples(examples)
    with torch.inference_mode():
        found = generators.log_probabilities(batch_of(pieces, vocabulary.pad))
        for task in TASKS:
            expected = [p for piece in pieces for p in one_token_at_a_time(distribution, generators, piece, task)]
            assert found[task].tolist() == pytest.approx(expected, abs=1e-5)


def test_the_end_token_makes_texts_a_distribution(distribution, tiny_generators, vocabulary):
    # p(end at once) + sum over first tokens of p(token) is all there is: what is left after n tokens only falls.
    generators = build(tiny_generators, vocabulary)
    network = generators.network("centre")
    (piece,) = generators.cutter.sentences(["the cat"])
    memory = network.remember(network.encode(pad([piece], 0)))
    last = network.finish(network.start(pad([piece], 0), 4), memory, torch.ones(memory.shape[:2], dtype=torch.bool))
    everything = distribution(network, last[0]).exp()
    torch.testing.assert_close(everything.sum(1), torch.ones(len(piece)))
    assert (everything[:, vocabulary.eos] > 0).all()


def test_the_loss_is_the_mean_over_tasks_of_the_mean_over_tokens(tiny_generators, vocabulary, examples):
    generators = build(tiny_generators, vocabulary)
    batch = batch_of(generators.cutter.examples(examples), 0)
    parts = generators.log_probabilities(batch)
    loss = generators.loss(batch)
    assert loss.item() == pytest.approx(-sum(part.mean().item() for part in parts.values()) / 3)


def test_perplexity_is_exp_of_the_mean_over_tokens(distribution, tiny_generators, vocabulary, examples):
    generators = build(tiny_generators, vocabulary).train()
    found = perplexity(generators, examples, batch_size=3)
    assert generators.training
    generators.eval()
    logs = [
        p
        for piece in generators.cutter.examples(examples)
        for p in one_token_at_a_time(distribution, generators, piece, "left")
    ]
    assert found.of("left") == pytest.approx(math.exp(-sum(logs) / len(logs)), rel=1e-4)
    assert found.tokens["left"] == len(logs)
    # An untrained network knows about nothing, so it is about as perplexed as there are ids (adaptive: not evenly).
    flat = build(tiny_generators, vocabulary, softmax="full")
    assert perplexity(flat, examples).of() == pytest.approx(len(vocabulary), rel=0.1)


def test_ngram_perplexity_by_hand(tiny_generators, vocabulary, ngrams):
    generators = build(tiny_generators, vocabulary)
    example = Example((), "the cat", ())
    (piece,) = generators.cutter.sentences(["the cat"])
    model = ngrams.Unigram([piece.ids], len(vocabulary))
    found = ngrams.perplexity_of(model, generators.cutter, [example])
    n, size = len(piece), len(vocabulary)
    assert len(set(piece.ids)) == n
    assert found.tokens == {"left": 1, "centre": n, "right": 1}
    assert found.of() == pytest.approx((n + size) / 2)


@pytest.mark.parametrize("networks", ["one", "three"])
def test_saved_and_loaded_gives_the_same(tiny_generators, vocabulary, examples, tmp_path, networks):
    generators = build(tiny_generators, vocabulary, networks=networks)
    generators.save(tmp_path)
    loaded = Generators.load(tmp_path)
    assert loaded.options == generators.options
    assert perplexity(loaded, examples) == perplexity(generators, examples)


def test_errors(tiny_generators, vocabulary, chunks, tmp_path):
    with pytest.raises(ContextError, match="train them first"):
        Generators.load(tmp_path)
    build(tiny_generators, vocabulary).save(tmp_path)
    Vocabulary.train([s for chunk in chunks for s in chunk.sentences], 350).save(tmp_path)
    with pytest.raises(ContextError, match="not the one of its generators"):
        Generators.load(tmp_path)
