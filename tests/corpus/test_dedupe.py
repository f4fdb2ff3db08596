"""Deduplication against a set."""

import random

import pytest

from likewise.corpus.dedupe import Fingerprints


@pytest.mark.parametrize("partition", [1 << 22, 1000, 64])
def test_same_as_a_set(tmp_path, partition):
    chance = random.Random(5)
    texts = [f"text {chance.randrange(900)}" for _ in range(3000)]
    fingerprints = Fingerprints(tmp_path, partition)
    seen: set[str] = set()
    wanted = []
    for text in texts:
        wanted.append(text in seen)
        seen.add(text)
        fingerprints.add(text)
    assert fingerprints.repeated().tolist() == wanted


def test_nothing_added(tmp_path):
    assert len(Fingerprints(tmp_path).repeated()) == 0
