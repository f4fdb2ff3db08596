import pytest
import torch

from compared.consert_loss import changed
from likewise.recipes import OptionError, find_recipe

CONSERT = find_recipe("consert")


def test_the_authors_values():
    options = CONSERT.options("paper-base")
    assert not options.length_batches
    assert (options.first, options.second, options.feature_share) == ("feature-cutoff", "shuffle", 0.2)
    assert (options.temperature, options.dropout, options.pooling) == (0.1, 0.0, "last-two")
    assert (options.batch_size, options.learning_rate, options.max_length, options.epochs) == (96, 5e-7, 64, 10)
    large = CONSERT.options("paper-large")
    assert (large.batch_size, large.max_length) == (32, 40)


def test_each_view_has_its_own_share():
    options = CONSERT.options(token_share=0.1, feature_share=0.2, dropout_share=0.3)
    ones, mask = torch.ones(50, 40, 100), torch.ones(50, 40, dtype=torch.long)
    shares = {
        view: (changed(options, view, ones, mask) == 0).float().mean().item()
        for view in ("token-cutoff", "feature-cutoff", "dropout", "shuffle")
    }
    expected = {"token-cutoff": 0.1, "feature-cutoff": 0.2, "dropout": 0.3, "shuffle": 0.0}
    assert shares == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("pooling", ["last-two", "mean", "cls"])
def test_pooling(tiny_base, pooling):
    encoder = CONSERT.build_encoder(str(tiny_base), CONSERT.options(pooling=pooling))
    kinds = [type(module).__name__ for module in encoder]
    assert ("WeightedLayerPooling" in kinds) == (pooling == "last-two")
    assert encoder[-1].pooling_mode == ("cls" if pooling == "cls" else "mean")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first": "none", "second": "none"}, "equal"),
        ({"token_share": 1.5}, "token_share must be at most 1"),
        ({"dropout_share": 1.0}, "dropout_share must be below 1"),
        ({"first": "cutoff"}, "feature-cutoff"),
    ],
)
def test_contradictions_are_refused(changes, message):
    with pytest.raises(OptionError, match=message):
        CONSERT.options(**changes)


def test_views_may_differ_by_the_encoder_s_dropout_alone():
    assert CONSERT.options(first="none", second="none", dropout=0.1).dropout == 0.1
