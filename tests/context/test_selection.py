"""Selection, against the rule of section 3.3 as a literal greedy loop."""

import math
import random

import numpy as np
import pytest

from likewise.context import ContextFinder, SelectionOptions, Workspace
from likewise.context.context_sets import random_contexts
from likewise.context.index import Chunk, ChunkStore, write_chunks
from likewise.context.states import States

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


def test_without_diversity_the_best_are_taken(store):
    scores, options = np.array([0.1, 0.9, 0.9, 0.5]), SelectionOptions(size=3, diversity=False)
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
        return np.random.default_rng(len(sentence)).permutation(200)[:most]


class ByNumber:
    """Any score will do that is a function of sentence and context."""

    def scores(self, sentence, contexts):
        return np.sin(contexts * (1.0 + len(sentence))).astype(np.float32)


def select(sentence, store, retrieval, ranker, *rest):
    return ContextFinder(store, retrieval, ranker).find(sentence, *rest)


def word_sets(store, numbers):
    return [frozenset(text.split()) for text in store.preceding(numbers)]


@pytest.mark.parametrize("size", [5, 40, 300])
@pytest.mark.parametrize("sentence", ["a sentence", "f", "b c d e"])
def test_the_two_steps_with_the_discriminator_alone(store, size, sentence):
    options = SelectionOptions(size=size, candidates=90, same=1.1)
    found = select(sentence, store, Everything(), ByNumber(), options)
    chunks = np.sort(Everything().candidates(sentence, 90))
    numbers = store.contexts_of(chunks)
    scores = ByNumber().scores(sentence, numbers)
    expected = greedy(scores, store.positions(numbers)[0], word_sets(store, numbers), size, 0.5)
    assert found.tolist() == numbers[expected].tolist()


def test_a_scorer_chooses_among_what_the_discriminator_leaves(store):
    asked = []

    def scorer(sentence, contexts):
        asked.extend(contexts.tolist())
        return -np.cos(7.0 * contexts)

    options = SelectionOptions(size=8, candidates=150, screened=60, same=1.1)
    found = select("another", store, Everything(), ByNumber(), options, scorer)
    chunks = Everything().candidates("another", 150)
    numbers = sorted(store.contexts_of(chunks), key=lambda n: -ByNumber().scores("another", np.array([n]))[0])[:60]
    assert sorted(asked) == sorted(numbers)
    numbers = np.sort(numbers)
    scores = scorer("another", numbers).astype(np.float32)
    expected = greedy(scores, store.positions(numbers)[0], word_sets(store, numbers), 8, 0.5)
    assert found.tolist() == numbers[expected].tolist()
    alone = select("another", store, Everything(), ByNumber(), options.updated(screened=0), scorer)
    assert alone.tolist() == select("another", store, Everything(), ByNumber(), options).tolist()


def test_no_diversity_takes_the_best_contexts(store):
    options = SelectionOptions(size=30, candidates=100, diversity=False)
    found = select("x", store, Everything(), ByNumber(), options)
    numbers = store.contexts_of(np.sort(Everything().candidates("x", 100)))
    best = sorted(ByNumber().scores("x", numbers).tolist())[-30:]
    assert sorted(ByNumber().scores("x", found).tolist()) == best
    assert len(set(store.positions(found)[0])) < 30


def test_random_contexts_hang_on_the_sentence_alone(store):
    options = SelectionOptions(size=25, strategy="random")
    found = select("x", store, Everything(), ByNumber(), options)
    assert len(set(found.tolist())) == 25
    assert select("x", store, Everything(), ByNumber(), options).tolist() == found.tolist()
    assert select("y", store, Everything(), ByNumber(), options).tolist() != found.tolist()
    assert random_contexts("x", 10, 50).size == 10
    # All contexts are as likely: 4,000 draws of 1 in 20.
    counts = np.bincount([int(random_contexts(str(i), 20, 1)[0]) for i in range(4000)], minlength=20)
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
            return np.arange(8)

    options = SelectionOptions(size=32, strategy=strategy, diversity=diversity)
    found = select(own, store, All(), ByNumber(), options)
    given = set(zip(*(part.tolist() for part in store.positions(found)), strict=True))
    # Gaps at 1 to 4 see two sentences to either side: in chunk 0 all see the third one, in chunk 3 two see the first.
    assert not any(chunk == 0 for chunk, _ in given)
    assert not given & {(3, 1), (3, 2)}
    if not diversity or strategy == "random":
        assert given == {(chunk, place) for chunk in range(1, 8) for place in range(1, 5)} - {(3, 1), (3, 2)}
    every = select(own, store, All(), ByNumber(), options.updated(same=1.1))
    assert 0 in store.positions(every)[0]


def test_nothing_retrieved_gives_an_empty_set(store):
    class Nothing:
        def candidates(self, sentence, most):
            return np.zeros(0, np.int64)

    assert len(select("x", store, Nothing(), ByNumber())) == 0


def test_cached_ranking_is_the_plain_forward(trained, plain_logit):
    finder = ContextFinder.open(trained)
    store, model, states = finder.store, finder.ranker.model, States(Workspace(trained))
    sentence = "The violin stood beside the drum."
    numbers = np.arange(0, store.n_contexts, 3)
    own = states.read([sentence])[0].ids
    expected = []
    for row in store.places(numbers)[1]:
        sides = row[: store.left], row[store.left :]
        logit = plain_logit(model, own, *([one.ids for one in states.of(side[side >= 0])] for side in sides))
        expected.append(math.log(1 / (1 + math.exp(-logit.item()))))
    np.testing.assert_allclose(finder.ranker.scores(sentence, numbers), expected, atol=1e-5)


def test_the_finder_of_a_workspace(trained):
    finder = ContextFinder.open(trained)
    found = finder.find("The violin stood beside the drum.", SelectionOptions(size=10, diversity=False))
    chunks = finder.store.positions(found)[0]
    assert len(found) == 10
    themes = (finder.store.documents[chunks] % 4).tolist()
    assert themes.count(3) >= 0.6 * len(found), "contexts of the theme music come first; chance gives a quarter"
