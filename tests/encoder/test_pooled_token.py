"""The oracle is the encoder without the short cut: transformers' own last layer over all tokens."""

import copy
import threading

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, WordWeights
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertModel, BertTokenizerFast

from likewise.encoder.attention import only_pooled_token
from likewise.encoder.build import build_encoder, build_prompt_encoder, set_dropout
from likewise.encoder.modules import without_training_head

TEXTS = ["The cat sees a dog.", "a river", "the old bridge near the garden and the teacher", "the"]


@pytest.fixture(params=["cls", "mask"])
def encoder(request, base):
    torch.manual_seed(0)  # of the head: large gradients round by more
    if request.param == "cls":
        return build_encoder(base, pooling="cls", head=True)
    return build_prompt_encoder(base, 'This "X" means [MASK], you see.', head=True)


def embed(model, key="sentence_embedding"):
    return model(dict(model.preprocess(TEXTS)))[key]


def last_layer(model):
    return model[0].auto_model.encoder.layer[-1]


def test_the_same_vectors_of_padded_sentences(encoder):
    encoder.eval()
    with torch.no_grad():
        whole = embed(encoder)
        with only_pooled_token(encoder) as pools_one:
            short = embed(encoder)
    assert pools_one
    assert torch.allclose(short, whole, atol=1e-6)
    assert not torch.equal(short, torch.zeros_like(short))


def test_a_saved_encoder_too(encoder, tmp_path):
    without_training_head(encoder).save_pretrained(str(tmp_path), create_model_card=False)
    model = SentenceTransformer(str(tmp_path))
    with torch.no_grad():
        wanted = embed(model)
        with only_pooled_token(model) as pools_one:
            assert pools_one
            assert torch.allclose(embed(model), wanted, atol=1e-6)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_step_of_training_is_the_same_step(encoder, attention):
    set_dropout(encoder[0], 0.0)
    encoder[0].auto_model.set_attn_implementation(attention)
    encoder.train()
    target = torch.randn(len(TEXTS), 32, generator=torch.Generator().manual_seed(5))
    found = []
    for short in (False, True):
        encoder.zero_grad()
        if short:
            with only_pooled_token(encoder) as pools_one:
                assert pools_one
                vectors = embed(encoder)
        else:
            vectors = embed(encoder)
        (vectors * target).sum().backward()
        gradients = {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}
        found.append((vectors.detach(), gradients))
    (whole, whole_gradients), (short, short_gradients) = found
    assert torch.allclose(short, whole, atol=1e-6)
    assert short_gradients.keys() == whole_gradients.keys()
    for name, gradient in whole_gradients.items():
        assert torch.allclose(short_gradients[name], gradient, atol=1e-5), name


def test_less_is_computed(encoder):
    """No product of the last layer sees more than one row a sentence."""
    rows = []
    layer = last_layer(encoder)
    for part in (layer.attention.output.dense, layer.intermediate.dense, layer.output.dense):
        part.register_forward_hook(lambda module, inputs, output: rows.append(output.shape[:2]))
    with torch.no_grad(), only_pooled_token(encoder):
        embed(encoder)
    assert rows == [(len(TEXTS), 1)] * 3


def test_a_sixth_of_the_last_layer_is_left(tmp_path, tiny_base):
    """Counted by torch, for a layer of BERT's shape: keys and values of all tokens, all else of one."""
    config = BertConfig(
        vocab_size=200, hidden_size=128, num_hidden_layers=1, num_attention_heads=4, intermediate_size=512
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(tmp_path)
    BertTokenizerFast.from_pretrained(tiny_base).save_pretrained(tmp_path)
    encoder = build_encoder(str(tmp_path), head=False).eval()
    encoder[0].auto_model.set_attn_implementation("eager")  # whose products are counted too
    features = {"input_ids": torch.full((4, 64), 7), "attention_mask": torch.ones(4, 64, dtype=torch.long)}

    def operations():
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            encoder(dict(features))
        return counter.get_total_flops()

    whole = operations()
    with only_pooled_token(encoder):
        short = operations()
    rows, pairs, width = 4 * 64, 4 * 64 * 64, 128
    pooler = 4 * width**2  # BERT's own, which is not used
    assert whole == 2 * (12 * rows * width**2 + 2 * pairs * width + pooler)
    assert short == 2 * (2 * rows * width**2 + 10 * 4 * width**2 + 2 * 4 * 64 * width + pooler)
    assert short < whole / 5


def test_other_threads_have_the_whole_layer_and_nothing_is_left_behind(encoder):
    encoder.eval()
    with torch.no_grad():
        wanted = embed(encoder, "token_embeddings")
    seen = []

    def other() -> None:
        with torch.no_grad():
            seen.append(embed(encoder, "token_embeddings"))

    with only_pooled_token(encoder), only_pooled_token(encoder):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert torch.equal(seen[0], wanted)
    with torch.no_grad():
        assert torch.equal(embed(encoder, "token_embeddings"), wanted)
    assert "forward" not in vars(last_layer(encoder))
    assert not encoder[0]._forward_pre_hooks


def test_many_threads_at_once(encoder):
    encoder.eval()
    with torch.no_grad():
        wanted = embed(encoder)
    far = []

    def work() -> None:
        for _ in range(20):
            with torch.no_grad(), only_pooled_token(encoder):
                far.append((embed(encoder) - wanted).abs().max().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(far) == 80
    assert max(far) < 1e-6
    assert "forward" not in vars(last_layer(encoder))


def test_a_copy_made_inside_is_an_encoder_of_its_own(encoder):
    encoder.eval()
    with torch.no_grad():
        wanted = embed(encoder)
        with only_pooled_token(encoder):
            twin = copy.deepcopy(encoder)
        for parameter in encoder.parameters():
            parameter.zero_()
        assert torch.allclose(embed(twin), wanted, atol=1e-6)
        with only_pooled_token(twin):
            assert torch.allclose(embed(twin), wanted, atol=1e-6)


def test_what_needs_all_tokens_keeps_them(tiny_base):
    mean = build_encoder(str(tiny_base), pooling="mean", head=False).eval()
    with torch.no_grad():
        wanted = embed(mean)
        with only_pooled_token(mean) as pools_one:
            assert not pools_one
            assert torch.equal(embed(mean), wanted)


def test_a_word_that_a_text_may_hold_twice_keeps_the_whole_layer(tiny_base):
    transformer = build_encoder(str(tiny_base), head=False)[0]
    vocabulary = list(transformer.tokenizer.convert_ids_to_tokens(list(range(len(transformer.tokenizer)))))
    for word in ("the", "[MASK]"):
        weights = WordWeights(vocabulary, {word: 1.0}, unknown_word_weight=0.0)
        with only_pooled_token(SentenceTransformer(modules=[transformer, weights, Pooling(32, "mean")])) as pools_one:
            assert not pools_one


def test_gradient_checkpointing_keeps_the_whole_layer(tiny_base):
    model = build_encoder(str(tiny_base), pooling="cls", head=False).train()
    model[0].auto_model.gradient_checkpointing_enable()
    with only_pooled_token(model):
        embed(model).sum().backward()
    assert last_layer(model).output.dense.weight.grad is not None


def test_a_later_module_that_reads_tokens_keeps_them(tiny_base):
    class Reads(torch.nn.Module):
        def forward(self, features):
            return features | {"sentence_embedding": features["token_embeddings"].sum(1)}

    encoder = build_encoder(str(tiny_base), pooling="cls", head=False)
    for more, expected in ((Reads(), False), (Dense(32, 8), True)):
        model = SentenceTransformer(modules=[*encoder, more])
        with only_pooled_token(model) as pools_one:
            assert pools_one is expected
