"""Selection, against the rule of section 3.3 as a literal greedy loop."""

import math
import random

import numpy as np
import pytest

from likewise.context import ContextError, ContextFinder, SelectionOptions
from likewise.context.chunks import Chunk, ChunkStore, write_chunks
from likewise.context.selection import choose, random_contexts

WORDS = "a b c d e f g h".split()


def greedy(scores, chunks, preceding, size, limit):
    """Search, at every step, the best of what may still be taken."""
    taken: list[int] = []
    while len(taken) < size:
        best = None
        for i in range(len(scores)):
            if i in taken or any(chunks[i] == chunks[j] for j in taken):
                continue
            too_like = False
            for j in taken:
                union = preceding[i] | preceding[j]
                overlap = len(preceding[i] & preceding[j]) / len(union) if union else 1.0
                too_like = too_like or overlap >= limit
            if not too_like and (best is None or scores[i] > scores[best]):
                best = i
        if best is None:
            break
        taken.append(best)
    return taken


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("limit", [0.3, 0.5, 1.0])
def test_choice_is_that_of_the_literal_loop(seed, limit):
    rng = random.Random(seed)
    n = rng.randrange(1, 60)
    scores = np.array([rng.choice([0.0, rng.random()]) for _ in range(n)], np.float32)  # with ties
    chunks = np.array([rng.randrange(20) for _ in range(n)])
    preceding = [frozenset(rng.sample(WORDS, rng.randrange(0, 7))) for _ in range(n)]
    size = rng.randrange(1, 20)
    found = choose(scores, chunks, preceding, size, limit)
    assert found.tolist() == greedy(scores, chunks, preceding, size, limit)


def test_without_diversity_the_best_are_taken(store):
    scores, options = np.array([0.1, 0.9, 0.9, 0.5]), SelectionOptions(size=3, screened=0, diversity=False)
    assert ContextFinder(store, None, None)._choose("x", np.arange(4), scores, options).tolist() == [1, 2, 3]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> ChunkStore:
    rng = random.Random(4)
    sentences = [" ".join(rng.sample(WORDS, rng.randrange(1, 6))) for _ in range(1000)]
    chunks = [Chunk(i // 2, tuple(rng.sample(sentences, rng.randrange(3, 7)))) for i in range(200)]
    path = tmp_path_factory.mktemp("selection") / "chunks.arrow"
    write_chunks(path, chunks)
    return ChunkStore(path, 2, 2)


class Everything:
    def candidates(self, sentence, most):
        chunks = np.random.default_rng(len(sentence)).permutation(200)[:most]
        return chunks, np.ones(len(chunks), np.float32)


class ByNumber:
    """Any score will do that is a function of sentence and context."""

    def scores(self, sentence, contexts):
        return np.sin(contexts * (1.0 + len(sentence))).astype(np.float32)


def select(sentence, store, retrieval, ranker, *rest):
    return ContextFinder(store, retrieval, ranker).find(sentence, *rest)


def word_sets(store, numbers):
    return [frozenset(context.left[-1].split()) for context in store.contexts(numbers)]


@pytest.mark.parametrize("size", [5, 40, 300])
def test_the_two_steps_with_the_discriminator_alone(store, size):
    options = SelectionOptions(size=size, candidates=90, screened=0)
    found = select("a sentence", store, Everything(), ByNumber(), options)
    chunks = np.sort(Everything().candidates("a sentence", 90)[0])
    numbers = store.contexts_of(chunks)
    scores = ByNumber().scores("a sentence", numbers)
    expected = greedy(scores, store.positions(numbers)[0], word_sets(store, numbers), size, 0.5)
    assert found.numbers.tolist() == numbers[expected].tolist()
    assert found.scores.tolist() == scores[expected].tolist()
    assert list(found.contexts) == store.contexts(found.numbers)


def test_a_scorer_chooses_among_what_the_discriminator_leaves(store):
    asked = []

    def scorer(sentence, contexts):
        asked.extend(contexts)
        return np.array([-math.cos(7 * context.chunk + context.position) for context in contexts])

    options = SelectionOptions(size=8, candidates=150, screened=60)
    found = select("another", store, Everything(), ByNumber(), options, scorer)
    chunks = Everything().candidates("another", 150)[0]
    numbers = sorted(store.contexts_of(chunks), key=lambda n: -ByNumber().scores("another", np.array([n]))[0])[:60]
    assert {(c.chunk, c.position) for c in asked} == {(c.chunk, c.position) for c in store.contexts(np.array(numbers))}
    numbers = np.sort(numbers)
    scores = scorer("another", store.contexts(numbers)).astype(np.float32)
    expected = greedy(scores, store.positions(numbers)[0], word_sets(store, numbers), 8, 0.5)
    assert found.numbers.tolist() == numbers[expected].tolist()


def test_no_diversity_takes_the_best_contexts(store):
    options = SelectionOptions(size=30, candidates=100, screened=0, diversity=False)
    found = select("x", store, Everything(), ByNumber(), options)
    numbers = store.contexts_of(np.sort(Everything().candidates("x", 100)[0]))
    assert sorted(found.scores.tolist()) == sorted(ByNumber().scores("x", numbers).tolist())[-30:]
    assert len({context.chunk for context in found.contexts}) < 30


def test_random_contexts_hang_on_sentence_and_seed_alone(store):
    options = SelectionOptions(size=25, strategy="random")
    found = select("x", store, Everything(), ByNumber(), options)
    assert len(set(found.numbers.tolist())) == 25
    assert found.scores.tolist() == ByNumber().scores("x", found.numbers).tolist()
    assert select("x", store, Everything(), ByNumber(), options).numbers.tolist() == found.numbers.tolist()
    assert select("y", store, Everything(), ByNumber(), options).numbers.tolist() != found.numbers.tolist()
    assert random_contexts("x", 10, 50, seed=1).size == 10
    # All contexts are as likely: 4,000 draws of 1 in 20.
    counts = np.bincount([int(random_contexts(str(i), 20, 1, seed=1)[0]) for i in range(4000)], minlength=20)
    assert counts.min() > 140
    assert counts.max() < 260


@pytest.mark.parametrize("strategy", ["two-step", "random"])
@pytest.mark.parametrize("diversity", [True, False])
def test_a_sentence_of_the_corpus_is_not_given_its_own_places(tmp_path, strategy, diversity):
    own = "one two three four five"
    near = "One two three four five six."  # 5 of 6 words
    texts = [[f"{letter}{i} filler" for i in range(6)] for letter in "abcdefgh"]
    texts[0][2] = own
    texts[3][0] = near
    write_chunks(tmp_path / "chunks.arrow", [Chunk(i, tuple(text)) for i, text in enumerate(texts)])
    store = ChunkStore(tmp_path / "chunks.arrow", 2, 2)

    class All:
        def candidates(self, sentence, most):
            return np.arange(8), np.ones(8, np.float32)

    options = SelectionOptions(size=32, screened=0, strategy=strategy, diversity=diversity, max_overlap=1.0)
    found = select(own, store, All(), ByNumber(), options)
    given = {(context.chunk, context.position) for context in found.contexts}
    # Gaps at 1 to 4 see two sentences to either side: in chunk 0 all see the third one, in chunk 3 two see the first.
    assert not any(chunk == 0 for chunk, _ in given)
    assert not given & {(3, 1), (3, 2)}
    if not diversity or strategy == "random":
        assert given == {(chunk, place) for chunk in range(1, 8) for place in range(1, 5)} - {(3, 1), (3, 2)}
    every = select(own, store, All(), ByNumber(), options.updated(same=1.1))
    assert any(context.chunk == 0 for context in every.contexts)


def test_a_scorer_that_gives_too_few_scores(store):
    with pytest.raises(ContextError, match="the scorer gave"):
        select("x", store, Everything(), ByNumber(), SelectionOptions(size=5), lambda s, c: np.zeros(3))


def test_nothing_retrieved_gives_an_empty_set(store):
    class Nothing:
        def candidates(self, sentence, most):
            return np.zeros(0, np.int64), np.zeros(0, np.float32)

    assert len(select("x", store, Nothing(), ByNumber())) == 0


def test_cached_ranking_is_the_plain_forward(trained, plain_logit):
    finder = ContextFinder.open(trained)
    sentence = "The violin stood beside the drum."
    numbers = np.arange(0, finder.store.n_contexts, 3)
    encode, model = finder.ranker.encode, finder.ranker.model
    expected = []
    for context in finder.store.contexts(numbers):
        logit = plain_logit(model, encode([sentence])[0], encode(list(context.left)), encode(list(context.right)))
        expected.append(math.log(1 / (1 + math.exp(-logit.item()))))
    np.testing.assert_allclose(finder.ranker.scores(sentence, numbers), expected, atol=1e-5)


def test_the_finder_of_a_workspace(trained):
    finder = ContextFinder.open(trained)
    found = finder.find("The violin stood beside the drum.", SelectionOptions(size=10, max_overlap=0.9))
    assert len(found) == 10
    assert len({context.chunk for context in found.contexts}) == 10
    themes = [finder.store.documents[context.chunk] % 4 for context in found.contexts]
    assert themes.count(3) >= 6, "contexts of the theme music come first; chance gives 2.5"
