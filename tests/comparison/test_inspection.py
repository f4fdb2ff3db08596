import numpy as np
import pytest
import torch

from likewise.comparison import inspection
from likewise.comparison.inspection import Material, dropout_map, dropout_views, inspect, partners, shortened
from likewise.encoder.build import build_encoder
from likewise.evaluation.pairs import RatedPairs
from likewise.evaluation.registry import TASKS
from likewise.inference.vectors import encode


def test_shortened_sentences_lose_words_twice():
    whole, closer, farther = shortened(["too short", " ".join(f"w{i}" for i in range(15))], seed=1)
    assert (len(whole.split()), len(closer.split())) == (15, 12)
    assert len(farther.split()) == 9  # 20% and 40% of 15 words are gone
    assert set(farther.split()) < set(closer.split()) < set(whole.split())


def test_distributions_and_worst_pairs_are_those_of_the_model(tiny_base, sentences):
    # The mean: at [CLS] an untrained model gives vectors so alike that rounding decides their ranks.
    tiny_model = build_encoder(str(tiny_base), pooling="mean", head=False).eval()
    first, second = sentences[:40], sentences[40:80]
    gold = np.linspace(0, 5, 40)
    material = Material(
        tuple(sentences[:20]), {}, tuple(sentences[:3]), TASKS["sts-b-dev"], RatedPairs(first, second, gold), 1
    )
    found = inspect(tiny_model, "tiny", material)
    one, two = (encode(tiny_model, side, normalize=True).astype(float) for side in (first, second))
    cosines = (one * two).sum(axis=1)
    by_kind = {part["kind"]: part for part in found["similarity"]}
    assert list(by_kind) == [
        "itself under dropout",
        "another sentence",
        *(f"pair rated {low} to {low + 1}" for low in (4, 3, 2, 1, 0)),
    ]
    assert by_kind["pair rated 4 to 5"]["mean"] == pytest.approx(cosines[gold >= 4].mean(), abs=1e-6)
    assert by_kind["pair rated 1 to 2"]["pairs"] == ((gold >= 1) & (gold < 2)).sum()
    ranks = np.argsort(np.argsort(cosines)) + 1
    worst = found["worst"]["worst"][0]
    assert worst["error"] == max((ranks - np.arange(1, 41)) ** 2)


def test_the_map_has_each_sentence_many_times(tiny_model, sentences):
    found = dropout_map(tiny_model, sentences[:3], seed=1)
    assert len(found["points"]) == len(found["of"]) == 3 * inspection.MAP_VIEWS
    assert [found["of"].count(i) for i in range(3)] == [inspection.MAP_VIEWS] * 3
    assert -1 <= found["between"] < found["within"] < 1
    assert found == dropout_map(tiny_model, sentences[:3], seed=1)


def test_no_map_without_dropout(tiny_base, sentences):
    model = build_encoder(str(tiny_base), head=False, dropout=0.0).eval()
    assert dropout_map(model, sentences[:3], seed=1) is None


def test_partners_are_others_and_each_is_taken_once():
    for count in (2, 3, 10, 1001):
        other = partners(count, seed=7)
        assert (other != np.arange(count)).all()
        assert sorted(other.tolist()) == list(range(count))
    assert partners(10, seed=7).tolist() == partners(10, seed=7).tolist() != partners(10, seed=8).tolist()


def test_views_differ_by_dropout_alone_and_leave_no_trace(tiny_model):
    texts = ["the cat sees a dog", "the farmer", "the old captain likes the small garden near the bridge"]
    before = torch.get_rng_state()
    first, second = dropout_views(tiny_model, texts, seed=1, batch_size=2)
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(module.training for module in tiny_model.modules())
    assert first.shape == second.shape == (3, 32)
    again = dropout_views(tiny_model, texts, seed=1, batch_size=2)
    assert np.array_equal(first, again[0])
    assert np.array_equal(second, again[1])

    def cosines(left, right):
        return [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in zip(left, right, strict=True)]

    assert max(cosines(first, second)) < 0.9999
    # With little dropout, each row is nearest to the vector without any of its own sentence: the rows are in order.
    for module in tiny_model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.001
    still = tiny_model.encode(texts)
    for view in dropout_views(tiny_model, texts, seed=1, batch_size=2):
        distances = ((view[:, None] - still[None]) ** 2).sum(-1)  # (3, 3)
        assert distances.argmin(1).tolist() == [0, 1, 2]


def test_a_model_without_dropout_has_none(tiny_model):
    for module in tiny_model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    assert dropout_views(tiny_model, ["the cat"], seed=1) is None
