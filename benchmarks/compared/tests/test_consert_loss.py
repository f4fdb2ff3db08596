import math

import numpy as np
import pytest
import torch
from transformers import RobertaConfig, RobertaModel

from compared.consert import ConSERTOptions
from compared.consert_loss import ConSERTLoss, nt_xent_symmetric
from likewise.encoder.build import build_encoder


@pytest.fixture
def encoder(tiny_base):
    return build_encoder(str(tiny_base), pooling="mean", head=False, dropout=0.0).train()


@pytest.fixture
def batch(encoder, sentences):
    return dict(encoder.tokenizer(sentences[:4], padding=True, return_tensors="pt"))


def plain(encoder, batch, **more):
    """The mean over tokens, by the bare transformer."""
    hidden = encoder[0].auto_model(**batch, **more).last_hidden_state
    mask = batch["attention_mask"][:, :, None]
    return (hidden * mask).sum(dim=1) / mask.sum(dim=1)


def test_no_view_is_the_encoder_as_it_is_and_the_loss_is_nt_xent(encoder, batch):
    loss = ConSERTLoss(encoder, ConSERTOptions(first="none", second="none", temperature=0.1))
    x = plain(encoder, batch)
    assert torch.allclose(loss.view(batch, "none"), x, atol=1e-5)
    assert torch.allclose(loss([batch]), nt_xent_symmetric(x, x, 0.1), atol=1e-4)


def test_shuffling_hands_other_positions_to_the_transformer(encoder, batch):
    loss = ConSERTLoss(encoder, ConSERTOptions())
    torch.manual_seed(3)
    found = loss.view(batch, "shuffle")
    torch.manual_seed(3)
    from compared.embedding_views import shuffle_positions

    assert torch.allclose(found, plain(encoder, batch, position_ids=shuffle_positions(batch["attention_mask"])))
    assert (found - plain(encoder, batch)).abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["token-cutoff", "feature-cutoff", "dropout"])
def test_a_view_disturbs_what_comes_out_of_the_embeddings(encoder, batch, kind):
    loss = ConSERTLoss(encoder, ConSERTOptions(token_share=0.5, feature_share=0.5, dropout_share=0.5))
    embeddings = encoder[0].auto_model.embeddings
    seen = []
    # After the loss's own hook: it is put in later.
    original = embeddings.forward
    with torch.no_grad():
        undisturbed = original(batch["input_ids"], token_type_ids=batch["token_type_ids"])
    first_layer = encoder[0].auto_model.encoder.layer[0]
    handle = first_layer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach().clone()))
    loss.view(batch, kind)
    handle.remove()
    (got,) = seen
    gone = got == 0
    if kind == "dropout":
        assert gone.float().mean().item() == pytest.approx(0.5, abs=0.05)
        assert torch.allclose(got[~gone], 2 * undisturbed[~gone])
    else:
        assert torch.allclose(got[~gone], undisturbed[~gone])
        whole = gone.all(dim=2 if kind == "token-cutoff" else 1)
        assert whole.float().mean().item() > 0.3
    # The hook is gone afterwards.
    assert torch.allclose(loss.view(batch, "none"), plain(encoder, batch), atol=1e-5)


def test_positions_of_roberta_begin_behind_its_padding(encoder, batch):
    config = RobertaConfig(
        hidden_size=32, num_attention_heads=1, num_hidden_layers=1, vocab_size=200, intermediate_size=8
    )
    encoder[0].model = RobertaModel(config, add_pooling_layer=False).eval()
    encoder.eval()
    seen = []
    encoder[0].auto_model.embeddings.register_forward_pre_hook(
        lambda module, inputs, named: seen.append(named["position_ids"]), with_kwargs=True
    )
    del batch["token_type_ids"]
    ConSERTLoss(encoder, ConSERTOptions()).view(batch, "shuffle")
    assert seen[0].min() == config.pad_token_id + 1
    assert seen[0].sort(dim=1).values[0].tolist() == list(range(2, 2 + seen[0].shape[1]))


def test_symmetric_nt_xent_is_simclr_s_over_both_views():
    first, second = (torch.randn(4, 6, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    z = np.concatenate([first, second]).astype(float)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    losses = []
    for i in range(8):
        others = sum(math.exp(z[i] @ z[k] / 0.1) for k in range(8) if k != i)
        losses.append(-math.log(math.exp(z[i] @ z[(i + 4) % 8] / 0.1) / others))
    assert nt_xent_symmetric(first, second, 0.1).item() == pytest.approx(np.mean(losses), rel=1e-5)
