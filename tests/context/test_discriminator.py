"""The discriminator, against an LSTM over single sentences and against equation 1 written out."""

import numpy as np
import pytest
import torch

from likewise.context.discriminator import Discriminator, LstmReader
from likewise.context.states import SentenceReading
from likewise.context.training_loop import load_weights, save_weights
from likewise.context.workspace import ContextError, Stage

IDS = [np.array(ids, int) for ids in ([5, 6, 7], [8], [], [9, 5, 5, 10, 11, 12, 4], [3, 3], [7] * 15)]
SENTENCES = [SentenceReading(np.zeros(0), ids, np.zeros((0, 0))) for ids in IDS]


def model_of(left: int = 2, right: int = 1) -> Discriminator:
    torch.manual_seed(3)
    model = Discriminator(LstmReader(20, 6, 8), 16, left, right, rank=5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


@torch.no_grad()
def test_representations_are_the_last_states_of_a_bidirectional_lstm_without_padding():
    model = model_of()
    many = SENTENCES * 30  # more than one pass
    found = model.represent(many)
    for (_, ids, _), row in zip(many, found, strict=True):
        alone = torch.tensor(ids if len(ids) else [0])
        _, (states, _) = model.reader.lstm(model.reader.embed(alone)[:, None])  # alone, so nothing is padded
        torch.testing.assert_close(row, states[:, 0].flatten())
    assert model.represent([]).shape == (0, 16)


def literal_logit(model: Discriminator, h: torch.Tensor, around: list[torch.Tensor | None]) -> torch.Tensor:
    """The score of the module's docstring, with the concatenation written out; around: left to right."""
    weight = torch.cat([*model.sum_context.weight[: model.left], model.sum_sentence.weight[0]])
    weight = torch.cat([weight, *model.sum_context.weight[model.left :]])
    filled = [torch.zeros_like(h) if other is None else other for other in around]
    concatenated = torch.cat([*filled[: model.left], h, *filled[model.left :]])
    logit = weight @ concatenated + model.sum_sentence.bias[0]  # equation 1
    own = model.meet_sentence.weight @ h + model.meet_sentence.bias
    for j, other in enumerate(around):
        if other is not None:
            block = slice(j * model.rank, (j + 1) * model.rank)
            met = model.meet_context.weight[block] @ other + model.meet_context.bias[block]
            logit = logit + model.scales[j] * own @ met / (own.norm() * met.norm())
    return logit


@torch.no_grad()
def test_parts_and_forward_give_the_literal_score(plain_logit):
    model = model_of()
    h = model.represent(SENTENCES)
    places = torch.tensor([[0, 3, 4], [-1, 5, 1], [4, 2, -1], [-1, -1, 0]])
    logits = model.logits(h, places.numpy()).T
    assert model.sentence_part(h).shape == (6, model.width)
    for s in range(len(SENTENCES)):
        for c, row in enumerate(places.tolist()):
            around = [None if i < 0 else h[i] for i in row]
            torch.testing.assert_close(logits[s, c], literal_logit(model, h[s], around))
    # The plain way: texts in, one logit out, with more context than the model reads.
    torch.testing.assert_close(plain_logit(model, IDS[1], [[9, 9], IDS[0], IDS[3]], [IDS[4]]), logits[1, 0])
    torch.testing.assert_close(plain_logit(model, IDS[1], [IDS[5]], [IDS[1], [9]]), logits[1, 1])


@torch.no_grad()
def test_equation_1_as_it_stands_ranks_the_contexts_alike_for_every_sentence():
    model = model_of()
    h = model.represent(SENTENCES)
    places = np.array([[0, 3, 4], [-1, 5, 1], [4, 2, 0]])
    logits = model.logits(h, places).T
    assert (logits.argsort(dim=1) != logits.argsort(dim=1)[0]).any()
    model.scales.zero_()  # without what is added to it
    logits = model.logits(h, places).T
    assert (logits.argsort(dim=1) == logits.argsort(dim=1)[0]).all()


@torch.no_grad()
def test_rank_0_is_equation_1_word_by_word():
    torch.manual_seed(0)
    model = Discriminator(LstmReader(20, 6, 8), 16, 2, 1, rank=0)
    h = model.represent(SENTENCES)
    places = np.array([[0, 3, 4], [-1, 5, 1]])
    found = model.logits(h, places)
    blocks = model.sum_context.weight  # (J, W): w on the context, a block a place
    for c, row in enumerate(places):
        for s in range(len(h)):
            around = [h[i] if i >= 0 else torch.zeros(16) for i in row]
            w = torch.cat([model.sum_sentence.weight[0], *blocks])
            expected = w @ torch.cat([h[s], *around]) + model.sum_sentence.bias[0]
            assert found[c, s].item() == pytest.approx(expected.item(), abs=1e-5)


def test_saved_and_loaded(tmp_path, plain_logit):
    model = model_of()
    save_weights(model, tmp_path)
    loaded = Discriminator(LstmReader(20, 6, 8), 16, 2, 1, rank=5)
    loaded.load_state_dict(load_weights(Stage("discriminator", tmp_path, {})))
    torch.testing.assert_close(plain_logit(loaded, [5], [[6]], [[7]]), plain_logit(model, [5], [[6]], [[7]]))


def test_nothing_to_load(tmp_path, says):
    stage = Stage("discriminator", tmp_path, {})
    with says(ContextError):
        load_weights(stage)
    (tmp_path / "model.safetensors").write_text("{}")
    with says(ContextError):
        load_weights(stage)
