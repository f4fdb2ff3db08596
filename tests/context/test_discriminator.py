"""The discriminator, against torch's own bidirectional LSTM and against equation 1 written out."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from likewise.context.discriminator import Discriminator, LstmReader, load_discriminator, save_discriminator
from likewise.context.workspace import ContextError

HEADS = ["product", "linear"]
SENTENCES = [[5, 6, 7], [8], [], [9, 5, 5, 10, 11, 12, 4], [3, 3], [7] * 15]


def model_of(head: str, left: int = 2, right: int = 1) -> Discriminator:
    torch.manual_seed(3)
    model = Discriminator(LstmReader(20, 6, 8), 16, left, right, head, rank=5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
        model.reader.embed.weight[0] = 100.0  # padding that is read would be seen
    return model.eval()


def torchs_own(model: Discriminator) -> nn.LSTM:
    lstm = nn.LSTM(6, 8, bidirectional=True)
    state = {**model.reader.forward_lstm.state_dict()}
    state |= {f"{name}_reverse": tensor for name, tensor in model.reader.backward_lstm.state_dict().items()}
    lstm.load_state_dict(state)
    return lstm


@torch.no_grad()
def test_representations_are_the_last_states_of_a_bidirectional_lstm_without_padding():
    model = model_of("product")
    lstm = torchs_own(model)
    found = model.represent(SENTENCES)
    for ids, row in zip(SENTENCES, found, strict=True):
        _, (states, _) = lstm(model.reader.embed(torch.tensor(ids or [1]))[:, None])  # alone, so nothing is padded
        torch.testing.assert_close(row, states[:, 0].flatten())


@torch.no_grad()
def test_representations_are_those_of_a_packed_batch():
    model = model_of("product")
    filled = [ids for ids in SENTENCES if ids] * 60  # more than one pass
    lengths = torch.tensor([len(ids) for ids in filled])
    batch = nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in filled])
    packed = pack_padded_sequence(model.reader.embed(batch), lengths, enforce_sorted=False)
    _, (states, _) = torchs_own(model)(packed)
    torch.testing.assert_close(model.represent(filled), torch.cat([states[0], states[1]], dim=1))


def test_padding_gets_no_gradient():
    model = model_of("product")
    model.represent(SENTENCES).sum().backward()
    assert model.reader.embed.weight.grad[0].abs().sum() == 0
    assert model.reader.embed.weight.grad[8].abs().sum() > 0


def literal_logit(model: Discriminator, h: torch.Tensor, around: list[torch.Tensor | None]) -> torch.Tensor:
    """The score of the module's docstring, with the concatenation written out; around: left to right."""
    weight = torch.cat([*model.sum_context.weight[: model.left], model.sum_sentence.weight[0]])
    weight = torch.cat([weight, *model.sum_context.weight[model.left :]])
    filled = [torch.zeros_like(h) if other is None else other for other in around]
    concatenated = torch.cat([*filled[: model.left], h, *filled[model.left :]])
    logit = weight @ concatenated + model.sum_sentence.bias[0]  # equation 1
    if model.head == "linear":
        return logit
    own = model.meet_sentence.weight @ h + model.meet_sentence.bias
    for j, other in enumerate(around):
        if other is not None:
            block = slice(j * model.rank, (j + 1) * model.rank)
            met = model.meet_context.weight[block] @ other + model.meet_context.bias[block]
            logit = logit + model.scales[j] * own @ met / (own.norm() * met.norm())
    return logit


@pytest.mark.parametrize("head", HEADS)
@torch.no_grad()
def test_parts_and_forward_give_the_literal_score(head, plain_logit):
    model = model_of(head)
    h = model.represent(SENTENCES)
    places = torch.tensor([[0, 3, 4], [-1, 5, 1], [4, 2, -1], [-1, -1, 0]])
    logits = model.combine(model.sentence_part(h), model.context_part(h, places))
    assert model.sentence_part(h).shape == (6, model.width)
    for s in range(len(SENTENCES)):
        for c, row in enumerate(places.tolist()):
            around = [None if i < 0 else h[i] for i in row]
            torch.testing.assert_close(logits[s, c], literal_logit(model, h[s], around))
    pairs = model.combine_pairs(model.sentence_part(h)[:4], model.context_part(h, places))
    torch.testing.assert_close(pairs, logits[range(4), range(4)])
    # The plain way: texts in, one logit out, with more context than the model reads.
    torch.testing.assert_close(
        plain_logit(model, SENTENCES[1], [[9, 9], SENTENCES[0], SENTENCES[3]], [SENTENCES[4]]), logits[1, 0]
    )
    torch.testing.assert_close(plain_logit(model, SENTENCES[1], [SENTENCES[5]], [SENTENCES[1], [9]]), logits[1, 1])


@torch.no_grad()
def test_equation_1_as_it_stands_ranks_the_contexts_alike_for_every_sentence():
    model = model_of("linear")
    h = model.represent(SENTENCES)
    places = torch.tensor([[0, 3, 4], [-1, 5, 1], [4, 2, 0]])
    logits = model.combine(model.sentence_part(h), model.context_part(h, places))
    assert (logits.argsort(dim=1) == logits.argsort(dim=1)[0]).all()
    logits = model_of("product").combine(
        model_of("product").sentence_part(h), model_of("product").context_part(h, places)
    )
    assert (logits.argsort(dim=1) != logits.argsort(dim=1)[0]).any()


@pytest.mark.parametrize("head", HEADS)
def test_saved_and_loaded(head, tmp_path, plain_logit):
    model = model_of(head)
    save_discriminator(tmp_path, model, max_tokens=9)
    loaded, max_tokens = load_discriminator(tmp_path)
    assert max_tokens == 9
    assert not loaded.training
    torch.testing.assert_close(plain_logit(loaded, [5], [[6]], [[7]]), plain_logit(model, [5], [[6]], [[7]]))


def test_nothing_to_load(tmp_path):
    with pytest.raises(ContextError, match="no discriminator"):
        load_discriminator(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ContextError, match="train it again"):
        load_discriminator(tmp_path)
