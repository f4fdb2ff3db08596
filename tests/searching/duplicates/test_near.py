"""The pass over texts that finds what repeats an earlier one, against a loop that says the same."""

import numpy as np
import pytest

from likewise.searching.duplicates.near import repeats
from likewise.searching.duplicates.word_differences import difference, wording


def made(seed: int = 0, copies: int = 300, size: int = 16) -> np.ndarray:
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(copies, size))
    vectors = np.concatenate([first, first + 0.1 * rng.normal(size=first.shape)])[rng.permutation(2 * copies)]
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def one_by_one(vectors: np.ndarray, threshold: float, reason=lambda one, other: "") -> list[int]:
    kept: list[int] = []
    of: list[int] = []
    for one, vector in enumerate(vectors):
        near = sorted((-float(vector @ vectors[other]), other) for other in kept)
        found = next((other for minus, other in near if -minus >= threshold and not reason(one, other)), one)
        of.append(found)
        kept += [one] if found == one else []
    return of


@pytest.mark.parametrize("block", [7, 64, 4096])
def test_what_repeats_is_what_a_loop_over_all_texts_finds(block, monkeypatch):
    monkeypatch.setattr("likewise.searching.duplicates.near.BLOCK", block)
    vectors = made()
    found = repeats(vectors, 0.95)
    assert found.of.tolist() == one_by_one(vectors, 0.95)
    assert 250 < (found.of == np.arange(600)).sum() < 350
    others = found.of != np.arange(600)
    assert found.cosine[others] == pytest.approx((vectors[others] * vectors[found.of[others]]).sum(axis=1), abs=1e-5)
    kept = np.flatnonzero(~others)
    cosines = np.where(kept[None] < np.arange(600)[:, None], vectors @ vectors[kept].T, -np.inf)
    assert found.near[1:] == pytest.approx(np.maximum(cosines.max(axis=1), -1)[1:], abs=1e-5)


def test_a_pair_with_a_reason_against_it_does_not_count_and_is_told():
    vectors = made()

    def reason(one: int, other: int) -> str:
        return "odd" if (one + other) % 2 else ""

    found = repeats(vectors, 0.95, reason)
    assert found.of.tolist() == one_by_one(vectors, 0.95, reason)
    assert found.apart
    assert all((one + other) % 2 and why == "odd" and cosine >= 0.95 for one, other, cosine, why in found.apart)


def test_no_chain_of_small_steps_joins_what_is_far_apart():
    angles = np.radians(np.arange(0, 90, 10))
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    found = repeats(vectors, float(np.cos(np.radians(10.5))))
    assert found.of.tolist() == [0, 0, 2, 2, 4, 4, 6, 6, 8]


def test_cells_find_what_all_comparisons_find(monkeypatch):
    monkeypatch.setattr("likewise.searching.parts.cells.SIZE", 50)
    monkeypatch.setattr("likewise.searching.duplicates.near.BLOCK", 100)
    vectors = made(copies=1000)
    exact, fast = repeats(vectors, 0.95), repeats(vectors, 0.95, exact=100)
    assert (exact.of == fast.of).mean() > 0.99
    assert repeats(vectors, 0.95, exact=100).of.tolist() == fast.of.tolist()


def test_form_letters_that_differ_in_their_numbers_are_not_all_looked_at(monkeypatch):
    rng = np.random.default_rng(0)
    vectors = np.ones((400, 8)) + 0.001 * rng.normal(size=(400, 8))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    looks = []
    monkeypatch.setattr("likewise.searching.duplicates.near.BLOCK", 64)
    found = repeats(vectors, 0.9, lambda one, other: looks.append(one) or "numbers")
    assert found.of.tolist() == list(range(400))
    assert max(map(looks.count, set(looks))) == 20
    assert len(found.apart) == 399


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("Take 1,5 mg a day.", "Take 15 mg a day.", "numbers"),
        ("It costs 1,500 euros.", "It costs 1500 euros.", ""),
        ("Return it within 30 days.", "Return it after 30 days.", "opposites"),
        ("She is pre-diabetic now.", "She is post-diabetic now.", "opposites"),
        ("x = a + b in the code", "x = a - b in the code", "opposites"),
        ("a - b is what I want", "a - b is what I want, too", ""),
    ],
)
def test_what_tells_near_texts_apart(first, second, reason):
    assert difference(wording(first), wording(second)) == reason


@pytest.mark.parametrize("signs", ["✓ ✗", "☑ ☐", "→ ←", "♀ ♂", "📈 📉", "🙂 🙁"])
def test_signs_may_be_opposites(signs):
    first, second = (wording(f"{sign} the pump is done") for sign in signs.split())
    assert difference(first, second) == "opposites"
