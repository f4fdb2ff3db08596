"""The pairs of a harvest: none twice, the same for the same shard, near ones and unrelated ones."""

import math
from collections import Counter

import numpy as np
import pytest

from likewise.context.harvest_pairs import PairSource, tfidf
from likewise.context.stage_options import HarvestOptions
from likewise.context.workspace import ContextError

WORDS = "red blue green cold warm dry wet old new slow fast dark light heavy sweet sour loud calm rich poor".split()


def states_of(texts):
    """The word pieces of texts, as the stage states has them: words."""
    words = {word: i for i, word in enumerate(sorted({word for text in texts for word in text.split()}))}
    rows = [[words[word] for word in text.split()] for text in texts]
    holding = np.bincount([i for row in rows for i in set(row)], minlength=len(words))
    idf = np.log((len(texts) + 1) / (holding + 1)).astype(np.float32)
    starts = np.cumsum([0, *map(len, rows)])
    return np.concatenate(rows), starts, idf


@pytest.fixture(scope="module")
def pool():
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, size=5, replace=False)) for _ in range(400)]


def source(pool, **changes):
    options = {"pairs": 1200, "ranks": (1, 3, 9), "random": 2, "anchors": 20, **changes}
    return PairSource(pool, HarvestOptions(**options), tfidf(*states_of(pool)))


def test_no_pair_comes_twice_in_either_order(pool):
    drawn = source(pool)
    assert drawn.shards == 12
    pairs = [
        frozenset((p["sentence1"], p["sentence2"])) for k in range(drawn.shards) for p in drawn.shard(k).to_pylist()
    ]
    assert len(pairs) == len(set(pairs))
    assert all(len(pair) == 2 for pair in pairs)
    # An anchor near the end of the order finds fewer behind it, and equal pairs are left out.
    assert 0.9 * 1200 < len(pairs) <= 1200


def test_kinds_and_split(pool):
    drawn = source(pool, held_out=0.2)
    pairs = [p for k in range(drawn.shards) for p in drawn.shard(k).to_pylist()]
    kinds = Counter(p["kind"] for p in pairs)
    assert set(kinds) == {"rank 1", "rank 3", "rank 9", "random"}
    assert kinds["random"] > 400
    splits = Counter(p["split"] for p in pairs)
    for name in ("dev", "test"):
        assert abs(splits[name] / len(pairs) - 0.2) < 4 * math.sqrt(0.16 / len(pairs))
    assert drawn.split("a", "b") == drawn.split("b", "a")


def test_a_shard_is_the_same_when_it_is_made_again_alone(pool):
    assert source(pool).shard(7) == source(pool).shard(7)
    assert source(pool).fingerprint == source(pool).fingerprint
    other = source(pool, seed=2)
    assert other.shard(7) != source(pool).shard(7)
    assert other.fingerprint != source(pool).fingerprint


def literal_cosines(pool, row):
    """TF-IDF cosines with dictionaries."""
    bags = [Counter(text.split()) for text in pool]
    documents = Counter(key for bag in bags for key in bag)
    vectors = []
    for bag in bags:
        vector = {key: (1 + math.log(n)) * math.log((len(pool) + 1) / (documents[key] + 1)) for key, n in bag.items()}
        norm = math.sqrt(sum(x * x for x in vector.values()))
        vectors.append({key: x / norm for key, x in vector.items()})
    return [sum(x * v.get(key, 0.0) for key, x in vectors[row].items()) for v in vectors]


@pytest.mark.parametrize("dense", [False, True])
def test_partners_are_those_of_literal_tfidf(pool, dense):
    texts = [*dict.fromkeys(pool[:60]), "red red blue"]
    vectors = tfidf(*states_of(texts))
    drawn = PairSource(
        texts, HarvestOptions(anchors=2, ranks=(1,), min_words=1), vectors.toarray() if dense else vectors
    )
    for row in (0, 17, len(texts) - 1):
        cosines = np.array(literal_cosines(texts, row))
        allowed = np.arange(len(texts)) % 2 == 0
        for among in (np.ones(len(texts), bool), allowed):
            found = drawn.ranked(row, drawn.cosines(np.array([row]))[0], among, 8)
            assert among[found].all()
            assert row not in found
            others = among & (np.arange(len(texts)) != row)
            np.testing.assert_allclose(cosines[found], np.sort(cosines[others & (cosines > 1e-9)])[::-1][:8], atol=1e-6)


def test_ranked_partners_are_nearer_than_random_ones(pool):
    drawn = source(pool)
    shared = {"rank 1": [], "rank 9": [], "random": []}
    for pair in drawn.shard(0).to_pylist():
        if pair["kind"] in shared:
            shared[pair["kind"]].append(len({*pair["sentence1"].split()} & {*pair["sentence2"].split()}))
    assert np.mean(shared["rank 1"]) > np.mean(shared["rank 9"]) > np.mean(shared["random"])


def test_equal_short_and_long_sentences_are_not_drawn():
    texts = ["a b", *[f"one two three {i}" for i in range(30)], "one two three 1", " ".join("abcdefgh")]
    drawn = PairSource(texts, HarvestOptions(anchors=2, ranks=(1, 2), max_words=7), tfidf(*states_of(texts)))
    assert drawn.pool == [f"one two three {i}" for i in range(30)]


def test_errors(pool, says):
    with says(ContextError):
        source(pool[:10])
