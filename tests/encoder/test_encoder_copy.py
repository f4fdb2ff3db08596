import pytest
import torch

from likewise.encoder.build import build_encoder
from likewise.encoder.modules import without_training_head
from likewise.encoder.training_modules import EncoderCopy


@pytest.fixture
def encoder(tiny_base):
    return build_encoder(str(tiny_base), head=True, dropout=0.1)


def test_it_is_in_a_checkpoint_and_not_in_what_is_exported(encoder, tmp_path):
    module = EncoderCopy.of(encoder)
    with torch.no_grad():
        next(module.encoder.parameters()).add_(1.0)
    encoder.append(module)
    (tmp_path / "module").mkdir()
    module.save(str(tmp_path / "module"))
    loaded = EncoderCopy.load(str(tmp_path), subfolder="module")
    state, again = module.state_dict(), loaded.state_dict()
    assert state.keys() == again.keys()
    assert all(torch.equal(state[name], again[name]) for name in state)
    assert [type(part).__name__ for part in without_training_head(encoder)] == ["Transformer", "Pooling"]
