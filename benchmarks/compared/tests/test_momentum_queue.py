import copy

import pytest
import torch

from compared.esimcse_loss import MomentumQueue
from likewise.encoder.build import build_encoder
from likewise.encoder.modules import without_training_head


@pytest.fixture
def encoder(tiny_base):
    return build_encoder(str(tiny_base), head=True, dropout=0.1)


@pytest.fixture
def queue(encoder):
    return MomentumQueue.of(encoder, size=5, dimension=2, momentum=0.9)


def test_the_queue_is_first_in_first_out(queue):
    literal: list[list[float]] = []
    number = 0.0
    for count in (2, 3, 1, 4, 7, 1):
        vectors = [[number + i, -number - i] for i in range(count)]
        number += count
        queue.push(torch.tensor(vectors))
        literal = (literal + vectors)[-5:]
        assert queue.vectors().tolist() == literal


def test_what_was_read_from_the_queue_does_not_change_under_a_push(queue):
    queue.push(torch.ones(3, 2))
    before = queue.vectors()
    queue.push(torch.zeros(5, 2))
    assert before.tolist() == [[1.0, 1.0]] * 3


def test_the_copy_follows_by_momentum_and_gets_no_gradient(encoder, queue):
    old = copy.deepcopy(queue.encoder[0].state_dict())
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(1.0)
    queue.follow(encoder)
    for name, value in queue.encoder[0].named_parameters():
        trained = dict(encoder[0].named_parameters())[name]
        assert torch.allclose(value, 0.9 * old[name] + 0.1 * trained, atol=1e-6)
        assert not value.requires_grad


def test_the_copy_has_no_dropout_in_training_and_goes_through_the_trained_head(encoder, queue, sentences):
    encoder.append(queue)
    encoder.train()
    tokens = dict(encoder.tokenizer(sentences[:3], padding=True, return_tensors="pt"))
    head = encoder[2]
    first, second = queue.keys(tokens, head), queue.keys(tokens, head)
    assert torch.equal(first, second)
    plain = queue.encoder(dict(tokens))["sentence_embedding"]
    assert torch.allclose(first, torch.tanh(plain @ head.linear.weight.T + head.linear.bias), atol=1e-6)


def test_it_is_in_a_checkpoint_and_not_in_what_is_exported(encoder, tmp_path):
    module = MomentumQueue.of(encoder, size=4, dimension=32, momentum=0.7)
    with torch.no_grad():
        next(module.encoder.parameters()).add_(1.0)
    module.push(torch.randn(3, 32))
    encoder.append(module)
    (tmp_path / "module").mkdir()
    module.save(str(tmp_path / "module"))
    loaded = MomentumQueue.load(str(tmp_path), subfolder="module")
    state, again = module.state_dict(), loaded.state_dict()
    assert state.keys() == again.keys()
    assert all(torch.equal(state[name], again[name]) for name in state)
    assert loaded.momentum == 0.7
    assert [type(part).__name__ for part in without_training_head(encoder)] == ["Transformer", "Pooling"]
