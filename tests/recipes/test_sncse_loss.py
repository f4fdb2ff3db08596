import pytest
import torch

from likewise.encoder.build import build_prompt_encoder
from likewise.encoder.training_modules import FrozenCopy
from likewise.losses import functional
from likewise.recipes.sncse import SNCSE, SNCSEOptions


class Recorder(torch.nn.Module):
    """Stands in for an encoder: looks vectors up, and remembers the sizes of its forward passes."""

    def __init__(self):
        super().__init__()
        self.sizes = []
        self.table = torch.randn(20, 8, generator=torch.Generator().manual_seed(0))

    def forward(self, features):
        self.sizes.append(len(features["input_ids"]))
        return {"sentence_embedding": self.table[features["input_ids"][:, 0]]}


def batch():
    """Four sentences, of which the second and the fourth have negations."""
    return {"input_ids": torch.tensor([[0], [1], [2], [3], [11], [13]]), "rows": torch.tensor([1, 3])}


@pytest.mark.parametrize("role", ["soft-negative", "positive", "hard-negative", "none"])
def test_each_role_is_its_equation_from_one_forward(role):
    model = Recorder()
    options = SNCSEOptions(negation=role, temperature=0.2, alpha=0.1, beta=0.3, weight=0.5)
    loss = SNCSE.build_loss(model, options)
    parts = loss([batch()])
    assert model.sizes == [10]
    h, n, rows = model.table[:4], model.table[[11, 13]], torch.tensor([1, 3])
    info_nce = functional.nt_xent(h, h, 0.2)
    expected = {
        "soft-negative": {
            "contrastive": info_nce,
            "soft_negative": 0.5 * functional.bidirectional_margin(h[rows], h[rows], n, 0.1, 0.3),
        },
        "positive": {"contrastive": info_nce, "negation": functional.nt_xent(h[rows], n, 0.2)},
        "hard-negative": {"contrastive": functional.nt_xent_with_hard_negative(h, h, n, rows, 0.2)},
        "none": {"contrastive": info_nce},
    }[role]
    assert parts.keys() == expected.keys()
    assert all(torch.allclose(parts[name], expected[name]) for name in parts)
    outside = functional.outside_margins(h[rows], h[rows], n, 0.1, 0.3)
    assert loss.measures() == ({"outside_margins": outside} if role == "soft-negative" else {})


@pytest.mark.parametrize("role", ["soft-negative", "positive", "hard-negative"])
def test_a_batch_without_negations_can_be_differentiated(tiny_base, role):
    encoder = build_prompt_encoder(str(tiny_base), dropout=0.1).train()
    features = dict(encoder.tokenizer(["the cat", "a dog"], padding=True, return_tensors="pt"))
    parts = SNCSE.build_loss(encoder, SNCSEOptions(negation=role))(
        [features | {"rows": torch.tensor([], dtype=torch.long)}]
    )
    sum(parts.values()).backward()
    assert encoder[3].linear.weight.grad is not None


def test_opposites_share_the_forward_and_add_their_loss():
    model = Recorder()
    features = {
        "input_ids": torch.tensor([[0], [1], [2], [3], [11], [13], [15], [16]]),
        "rows": torch.tensor([1, 3]),
        "pairs": torch.tensor([1]),
    }
    parts = SNCSE.build_loss(model, SNCSEOptions(weight=0.5, temperature=0.2, opposite_weight=0.7))([dict(features)])
    assert model.sizes == [12]
    table = model.table
    assert torch.allclose(
        parts["opposites"], 0.7 * functional.agreeing_opposites(table[[3]], table[[13]], table[[15]], table[[16]], 0.2)
    )
    margin = functional.bidirectional_margin(table[[1, 3]], table[[1, 3]], table[[11, 13]], 0.1, 0.3)
    assert torch.allclose(parts["soft_negative"], 0.5 * margin)


def test_what_is_kept_is_the_vector_before_training_of_both_views_and_not_of_the_negation(tiny_base):
    encoder = build_prompt_encoder(str(tiny_base), head=False, dropout=0.1).eval()
    encoder.append(FrozenCopy.of(encoder))
    with torch.no_grad():
        for parameter in encoder[0].parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    loss = SNCSE.build_loss(encoder, SNCSEOptions(keep_weight=2.0, head=False))
    texts = ["the cat sees a dog", "a river", "the cat does not see a dog"]
    tokens = dict(encoder.tokenizer(texts, padding=True, return_tensors="pt"))
    parts = loss([tokens | {"rows": torch.tensor([0])}])
    now = encoder.encode(texts[:2], convert_to_tensor=True).double()
    before = build_prompt_encoder(str(tiny_base), head=False).eval()
    then = before.encode(texts[:2], convert_to_tensor=True).double()
    cosines = (now * then).sum(1) / (now.norm(dim=1) * then.norm(dim=1))
    # No dropout in evaluation, so that both views are the same.
    assert parts["keep"].item() == pytest.approx(2 * (1 - cosines.mean().item()), rel=1e-3)
    assert parts["keep"].item() > 1e-3


def test_in_two_prompts_the_first_views_are_a_pass_of_their_own():
    model = Recorder()
    # The sentences are rows 0 to 3 of the table in the one prompt, and 5 to 8 in the other.
    first = {"input_ids": torch.tensor([[0], [1], [2], [3]])}
    other = {"input_ids": torch.tensor([[5], [6], [7], [8], [11], [13]]), "rows": torch.tensor([1, 3])}
    parts = SNCSE.build_loss(model, SNCSEOptions(temperature=0.2, weight=0.5))([first, other])
    assert model.sizes == [4, 6]
    anchors, positives = model.table[:4], model.table[5:9]
    assert torch.allclose(parts["contrastive"], functional.nt_xent(anchors, positives, 0.2))
    margin = functional.bidirectional_margin(anchors[[1, 3]], positives[[1, 3]], model.table[[11, 13]], 0.1, 0.3)
    assert torch.allclose(parts["soft_negative"], 0.5 * margin)
