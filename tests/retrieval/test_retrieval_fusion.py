import numpy as np

from likewise.retrieval.fusion import exhaustive, nearest
from likewise.retrieval.pipeline import Pipeline, free_hybrid

COSINES = np.random.default_rng(0).normal(size=(4, 30))
WORDS = np.random.default_rng(1).exponential(size=(4, 30))


def standard(scores):
    return (scores - scores.mean()) / scores.std()


def test_the_free_hybrid_is_half_of_each_standardised_score():
    found = exhaustive(free_hybrid(), COSINES, WORDS)
    for row, cosines, words in zip(found, COSINES, WORDS, strict=True):
        np.testing.assert_allclose(row, 0.5 * standard(cosines) + 0.5 * standard(words))


def test_a_passage_takes_its_share_of_its_nearest():
    near = np.random.default_rng(2).integers(0, 30, (30, 5))
    pipeline = Pipeline(vectors=1, words=2, tokens=0, neighbours=0.3, nearest=2)
    found = exhaustive(pipeline, COSINES, WORDS, near)
    own = standard(COSINES[1]) + 2 * standard(WORDS[1])
    wanted = [0.7 * own[i] + 0.15 * (own[near[i, 0]] + own[near[i, 1]]) for i in range(30)]
    np.testing.assert_allclose(found[1], wanted)


def test_tokens_count_among_the_first_alone():
    fits = np.random.default_rng(3).normal(size=(4, 30))
    asked = []

    def of(query, passages):
        asked.append((query, len(passages)))
        return fits[query, passages]

    pipeline = Pipeline(vectors=1, words=0, tokens=0.5, first=12, neighbours=0)
    found = exhaustive(pipeline, COSINES, WORDS, fits=of)
    assert asked == [(query, 12) for query in range(4)]
    own = standard(COSINES[2])
    first = np.argsort(-own)[:12]
    gains = 0.5 * own[first].std() * standard(fits[2, first])
    wanted = own + np.sort(gains)[:2].mean()
    wanted[first] = own[first] + gains
    np.testing.assert_allclose(found[2], wanted)


def test_the_nearest_by_brute_force():
    vectors = np.random.default_rng(4).normal(size=(1500, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = nearest(vectors, 3)
    for row in (0, 1023, 1024, 1499):
        others = np.argsort(-(vectors @ vectors[row]))
        assert found[row].tolist() == [i for i in others if i != row][:3]
    assert nearest(vectors[:2], 3).tolist() == [[1], [0]]
