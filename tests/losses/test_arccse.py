import pytest
import torch

from likewise.encoder.build import build_encoder
from likewise.encoder.encoder_copy import FrozenCopy
from likewise.losses import functional
from likewise.losses.arccse import ArcConLoss, ArcCSELoss, EntailmentTripletLoss


def column(model, texts):
    return dict(model.tokenizer(texts, padding=True, return_tensors="pt"))


def test_parts_are_weighted_and_named(tiny_model):
    arccon, triplet = ArcConLoss(tiny_model), EntailmentTripletLoss(tiny_model, margin=0.5)
    one, three = (
        column(tiny_model, ["the cat", "a dog"]),
        column(tiny_model, ["the cat", "the [MASK]", "[MASK] dog"]),
    )
    parts = ArcCSELoss(arccon, triplet, 0.25)([one, three])
    assert torch.allclose(parts["contrastive"], arccon([one]))
    assert torch.allclose(parts["triplet"], 0.25 * triplet([three]))


@pytest.mark.parametrize("contrastive", [True, False])
def test_a_batch_without_triplets_has_a_zero_that_can_be_differentiated(tiny_model, contrastive):
    arccon = ArcConLoss(tiny_model) if contrastive else None
    parts = ArcCSELoss(arccon, EntailmentTripletLoss(tiny_model), 0.1)([column(tiny_model, ["the cat", "a dog"])])
    assert parts["triplet"].item() == 0
    sum(parts.values()).backward()


def test_the_trainers_wrapper_reaches_both_parts(tiny_model):
    loss = ArcCSELoss(ArcConLoss(tiny_model), EntailmentTripletLoss(tiny_model), 0.1)
    loss.model = torch.nn.Sequential(tiny_model)
    loss(
        [
            column(tiny_model, ["the cat", "a dog"]),
            column(tiny_model, ["the cat", "the [MASK]", "[MASK] dog"]),
        ]
    )
    assert loss.arccon.model is loss.model
    assert loss.triplet.model is loss.model


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(ValueError, match="nothing to learn"):
        ArcCSELoss(None, None)


def test_the_base_s_similarities_are_kept_in_the_saved_vectors_and_not_in_the_head_s(tiny_base):
    model = build_encoder(str(tiny_base), pooling="mean", head=True, dropout=0.0)
    model.append(FrozenCopy.of(model))
    model.train()
    texts = ["the cat", "a dog", "the old river"]
    loss = ArcCSELoss(ArcConLoss(model), None, keep_weight=2.0)
    assert loss([column(model, texts)])["keep"].item() == pytest.approx(0, abs=1e-5)  # nothing was trained yet
    model[0].auto_model.embeddings.word_embeddings.weight.data.mul_(0.5)
    now, before = (torch.tensor(one.eval().encode(texts)) for one in (model, model[-1].encoder))
    model.train()
    expected = 2.0 * functional.listwise_keep(now, before, 0.05)
    assert loss([column(model, texts)])["keep"].item() == pytest.approx(expected.item(), rel=1e-3)
    with pytest.raises(ValueError, match="FrozenCopy"):
        ArcCSELoss(ArcConLoss(build_encoder(str(tiny_base))), None, keep_weight=1.0)
