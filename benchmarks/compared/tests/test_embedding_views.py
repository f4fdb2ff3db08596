import pytest
import torch

from compared.embedding_views import cut_features, cut_tokens, shuffle_positions

MASK = torch.tensor([[1] * 10, [1] * 6 + [0] * 4, [1] * 2 + [0] * 8])


@pytest.fixture
def ones():
    torch.manual_seed(0)
    return torch.ones(3, 10, 20)


def test_token_cutoff_takes_whole_tokens_their_share_and_no_padding(ones):
    found = cut_tokens(ones, MASK, 0.35)
    gone = (found == 0).all(dim=2)
    assert ((found == 0).any(dim=2) == gone).all()
    assert gone.sum(dim=1).tolist() == [3, 2, 0]  # floor of 3.5, 2.1, 0.7
    assert not (gone & (MASK == 0)).any()
    seen = torch.stack([(cut_tokens(ones, MASK, 0.35) == 0).all(dim=2) for _ in range(300)]).float().mean(dim=0)
    assert (seen[0] - 0.3).abs().max() < 0.14
    assert (seen[1, :6] - 2 / 6).abs().max() < 0.14


def test_feature_cutoff_takes_the_same_features_of_all_tokens(ones):
    found = cut_features(ones, 0.2)
    gone = (found == 0).all(dim=1)  # (B, D)
    assert ((found == 0).any(dim=1) == gone).all()
    assert gone.sum(dim=1).tolist() == [4, 4, 4]
    assert len({tuple(row.tolist()) for row in gone}) == 3  # drawn for each sentence


def test_shuffling_permutes_the_tokens_and_leaves_padding():
    torch.manual_seed(0)
    found = shuffle_positions(MASK)
    assert found.shape == MASK.shape
    for row, length in zip(found.tolist(), (10, 6, 2), strict=True):
        assert sorted(row[:length]) == list(range(length))
        assert row[length:] == list(range(length, 10))
    firsts = torch.stack([shuffle_positions(MASK)[1] for _ in range(600)])[:, 0]
    assert ((firsts[:, None] == torch.arange(6)).float().mean(dim=0) - 1 / 6).abs().max() < 0.08


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_is_a_share(ones, share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        cut_tokens(ones, MASK, share)
    with pytest.raises(ValueError, match="between 0 and 1"):
        cut_features(ones, share)
