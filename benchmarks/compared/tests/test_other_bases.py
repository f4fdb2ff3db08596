"""An MPNet, which has relative positions and no decoder, under the systems that are compared."""

import numpy as np
import pytest
import torch

import likewise
from compared.consert import ConSERTOptions
from compared.consert_loss import ConSERTLoss
from compared.embedding_views import shuffle_positions
from likewise.encoder.build import build_encoder
from likewise.encoder.location import LoadError
from likewise.errors import LikewiseError


def test_a_recipe_that_needs_a_decoder_refuses_it_in_a_sentence(mpnet, corpus_file, tmp_path, capfd):
    with pytest.raises(LoadError, match="no decoder of the kind mpnet"):
        likewise.train("tsdae", corpus_file, base=mpnet, out=tmp_path / "out", batch_size=8, max_steps=2, quiet=True)
    assert "XXX" not in capfd.readouterr().err


def test_shuffling_moves_tokens_where_positions_are_relative(mpnet, sentences):
    encoder = build_encoder(mpnet, pooling="mean", head=False, dropout=0.0).eval()
    loss = ConSERTLoss(encoder, ConSERTOptions(pooling="mean"))
    text = sentences[0]
    batch = dict(encoder.tokenizer([text], return_tensors="pt"))
    torch.manual_seed(3)
    found = loss.view(batch, "shuffle")[0]
    torch.manual_seed(3)
    order = shuffle_positions(batch["attention_mask"])[0]
    assert order.tolist() != sorted(order.tolist())
    with torch.no_grad():
        moved = encoder[0].auto_model(input_ids=batch["input_ids"][:, order]).last_hidden_state[0]
        others = encoder[0].auto_model(input_ids=batch["input_ids"], position_ids=2 + order[None]).last_hidden_state[0]
    wanted = torch.nn.functional.normalize(moved.mean(dim=0), dim=0)  # as the base's vectors
    np.testing.assert_allclose(found.detach(), wanted, atol=1e-5)
    assert (moved.mean(dim=0) - others.mean(dim=0)).abs().max() > 1e-3  # positions alone do not reach the layers
    cls = build_encoder(mpnet, pooling="cls", head=False)
    with pytest.raises(LikewiseError, match="relative positions"):
        ConSERTLoss(cls, ConSERTOptions(pooling="cls"))
