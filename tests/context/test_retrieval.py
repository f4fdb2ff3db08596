"""Retrieval against TF-IDF written out over dictionaries."""

import math
import random
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from likewise.context.index import Retrieval, build_retrieval, hashing
from likewise.context.workspace import ContextError

BITS = 18


def terms_of(text: str) -> Counter[str]:
    words = re.findall(r"\w+", text.lower())
    return Counter([*words, *(f"{a} {b}" for a, b in pairwise(words))])


def dense_scores(query: str, texts: list[str]) -> list[float]:
    """The cosine of TF-IDF vectors, one text after the other, over the terms themselves."""
    counts = [terms_of(text) for text in texts]
    df = Counter(term for found in counts for term in found)
    idf = {term: 1 + math.log((1 + len(texts)) / (1 + n)) for term, n in df.items()}

    def vector(found: Counter[str]) -> dict[str, float]:
        # Terms that no text holds have no weight: nothing is known of how rare they are.
        weights = {term: (1 + math.log(n)) * idf[term] for term, n in found.items() if term in idf}
        norm = math.sqrt(sum(weight**2 for weight in weights.values()))
        return {term: weight / norm for term, weight in weights.items()}

    own = vector(terms_of(query))
    return [sum(own.get(term, 0.0) * weight for term, weight in vector(found).items()) for found in counts]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rng = random.Random(2)
    themes = ["violin concert song drum captain", "captain harbour island wave", "cow barn drum dog man bites"]
    return [" ".join(rng.choices(["the", "a", *themes[i % 3].split()], k=rng.randrange(4, 25))) for i in range(60)]


@pytest.fixture(scope="module")
def retrieval(texts, tmp_path_factory) -> Retrieval:
    folder = tmp_path_factory.mktemp("retrieval") / "index"
    build_retrieval(folder, iter(texts), BITS)
    return Retrieval(folder)


QUERIES = ["The violin stood beside the drum.", "a captain, a CAPTAIN and unheard-of words", "harbour"]


def test_no_two_terms_of_these_texts_share_a_hash(texts):
    # Otherwise the oracle, which does not hash, would be of another thing.
    terms = sorted({term for text in [*texts, *QUERIES] for term in terms_of(text)})
    words = [term for term in terms if " " not in term]
    found = hashing(BITS).transform(words).indices
    assert len(set(found)) == len(words)


@pytest.mark.parametrize("query", QUERIES)
def test_scores_are_those_of_a_dense_loop(retrieval, texts, query):
    np.testing.assert_allclose(retrieval.scores(query), dense_scores(query, texts), atol=1e-5)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("most", [1, 7, 60, 1000])
def test_candidates_are_the_best_of_all(retrieval, query, most):
    scores = retrieval.scores(query)
    expected = sorted((i for i in range(60) if scores[i] > 0), key=lambda i: (-scores[i], i))[:most]
    assert retrieval.candidates(query, most).tolist() == expected


def test_bigrams_tell_word_order(tmp_path):
    build_retrieval(tmp_path / "x", ["dog bites man", "man bites dog"], BITS)
    retrieval = Retrieval(tmp_path / "x")
    assert retrieval.candidates("man bites", 1).tolist() == [1]
    assert retrieval.candidates("dog bites", 1).tolist() == [0]


def test_nothing_in_common_finds_nothing(retrieval):
    for query in ("zebra xylophone", "", "!?"):
        assert len(retrieval.candidates(query, 10)) == 0


def test_texts_without_words(tmp_path, says):
    with says(ContextError):
        build_retrieval(tmp_path / "x", ["...", "!"], BITS)


def test_no_index(tmp_path, says):
    with says(ContextError):
        Retrieval(tmp_path)
