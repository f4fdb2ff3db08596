"""The Transformer against torch's own layers, and what its states may depend on."""

import pytest
import torch
from torch import nn

from likewise.context.network import Layer, Transformer
from likewise.context.options import LARGE
from likewise.context.subwords import Cutter, Padded, pad


@pytest.fixture
def cutter(vocabulary):
    return Cutter(vocabulary, 20, 3)


def network(options, vocabulary, **changes):
    torch.manual_seed(0)
    return Transformer(options.updated(**changes), len(vocabulary)).eval()


def copy_attention(ours, theirs):
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key_value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key_value.bias]))
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def test_a_reading_layer_is_torchs_decoder_layer(tiny_generators):
    torch.manual_seed(0)
    ours = Layer(tiny_generators, causal=True, reads=True).eval()
    theirs = nn.TransformerDecoderLayer(16, 2, 32, activation="gelu", batch_first=True, norm_first=True).eval()
    copy_attention(ours.attention, theirs.self_attn)
    copy_attention(ours.cross, theirs.multihead_attn)
    for name, part in (("linear1", ours.feed_forward[0]), ("linear2", ours.feed_forward[2])):
        getattr(theirs, name).load_state_dict(part.state_dict())
    x, memory = torch.randn(3, 5, 16), torch.randn(3, 4, 16)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 1]], dtype=torch.bool)
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    expected = theirs(x, memory, tgt_mask=causal, memory_key_padding_mask=~mask)
    found = ours(x, None, ours.cross.key_value(memory), mask)
    torch.testing.assert_close(found, expected)


def test_word_token_place_and_sentence_place_are_added(tiny_generators, vocabulary, cutter):
    net = network(tiny_generators, vocabulary)
    net.encoder, net.encoder_norm = nn.ModuleList(), nn.Identity()
    (piece,) = cutter.sides([("the cat", "a goose")], "left")
    found = net.encode(pad([piece], vocabulary.pad))[0]
    for t, (word, token, sentence) in enumerate(zip(piece.ids, piece.tokens, piece.sentences, strict=True)):
        expected = net.words.weight[word] + net.tokens.weight[token] + net.sentences.weight[sentence + 3]
        torch.testing.assert_close(found[t], expected)


def test_a_sentence_is_read_otherwise_left_and_right(tiny_generators, vocabulary, cutter):
    net = network(tiny_generators, vocabulary)
    left, right = (pad(cutter.sides([("the cat",)], side), 0) for side in ("left", "right"))
    assert torch.equal(left.ids, right.ids)
    assert (net.encode(left) - net.encode(right)).abs().max() > 1e-3


def test_a_decoder_is_not_told_how_many_sentences_follow(tiny_generators, vocabulary, cutter):
    net = network(tiny_generators, vocabulary)
    one, two = (pad(cutter.sides([text], "left"), 0) for text in (("the cat",), ("the cat", "a goose")))
    n = int(one.mask.sum()) - 1
    torch.testing.assert_close(net.start(one, 5)[:, :n], net.start(two, 5)[:, :n])


@pytest.mark.parametrize("softmax", ["full", "adaptive"])
def test_probabilities_sum_to_one_and_are_those_of_the_ids(distribution, tiny_generators, vocabulary, softmax):
    net = network(tiny_generators, vocabulary, softmax=softmax)
    last = torch.randn(7, 16)
    everything = distribution(net, last)
    assert everything.shape == (7, len(vocabulary))
    torch.testing.assert_close(everything.exp().sum(1), torch.ones(7))
    ids = torch.tensor([0, 2, 99, 100, 180, 200, len(vocabulary) - 1])
    torch.testing.assert_close(net.log_probabilities(last, ids), everything[torch.arange(7), ids])


def test_padding_changes_nothing(tiny_generators, vocabulary, cutter):
    net = network(tiny_generators, vocabulary)
    pieces = cutter.sentences(["the cat", "every day the horse looks for food at the harbour."])
    both, alone = pad(pieces, 0), pad(pieces[:1], 0)
    n = len(pieces[0])
    torch.testing.assert_close(net.encode(both)[0, :n], net.encode(alone)[0])

    def last(batch: Padded):
        return net.finish(net.start(batch, 4), net.remember(net.encode(batch)), batch.mask)

    torch.testing.assert_close(last(both)[0, :n], last(alone)[0])


def test_the_large_preset_has_the_size_of_the_papers():
    # Vaswani et al. 2017, table 3: 213 million parameters for 'big' with 37,000 sub-words.
    with torch.device("meta"):
        large = Transformer(LARGE, 37_000)
    assert sum(part.numel() for part in large.parameters()) == pytest.approx(213e6, rel=0.01)
