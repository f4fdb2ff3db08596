import numpy as np
import torch

from likewise.comparison.analyses import dropout_views, partners


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
