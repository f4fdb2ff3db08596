"""Bases of the two families of transformers that every encoder here is tested on."""

import pytest
import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

from likewise.encoder.poolings import TEMPLATE


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory, sentences):
    folder = tmp_path_factory.mktemp("tiny-roberta")
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator([*sentences, TEMPLATE], vocab_size=500, special_tokens=specials)
    bpe.save_model(str(folder))
    RobertaTokenizerFast.from_pretrained(str(folder), model_max_length=64).save_pretrained(folder)
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=500, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=70, pad_token_id=1,
    )  # fmt: skip
    RobertaModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


@pytest.fixture(params=["bert", "roberta"])
def base(request, tiny_base, tiny_roberta):
    return str({"bert": tiny_base, "roberta": tiny_roberta}[request.param])
