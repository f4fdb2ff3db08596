import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

from likewise.encoder.build import build_encoder
from likewise.encoder.location import LoadError
from likewise.encoder.modules import with_modules
from likewise.encoder.training_modules import PairClassifier
from likewise.training.finetune import to_continue

TEXTS = ["the cat sees the dog", "the old river"]


@pytest.fixture
def scaled(tiny_base, tmp_path):
    plain = build_encoder(str(tiny_base), pooling="mean", head=False)
    model = SentenceTransformer(
        modules=[*plain, Normalize()], prompts={"q": "the cat "}, default_prompt_name="q", similarity_fn_name="dot"
    )
    model.save_pretrained(str(tmp_path), create_model_card=False)
    return tmp_path


def test_vectors_have_their_own_length_in_training_and_length_1_in_what_is_saved(scaled):
    before = SentenceTransformer(str(scaled)).encode(TEXTS)
    encoder, export = to_continue(str(scaled))
    raw = encoder.encode(TEXTS)
    assert not torch.allclose(torch.tensor(raw).norm(dim=1), torch.ones(2), atol=0.01)
    after = export(with_modules(encoder, [*encoder, PairClassifier(32, 3)]))
    assert [type(module).__name__ for module in after] == ["Transformer", "Pooling", "Normalize"]
    assert after.encode(TEXTS) == pytest.approx(before, abs=1e-6)
    assert after.prompts["q"] == "the cat "
    assert (after.default_prompt_name, after.similarity_fn_name) == ("q", "dot")


def test_a_base_without_scaling_gets_none(tiny_base):
    encoder, export = to_continue(str(tiny_base))
    assert [type(module).__name__ for module in export(encoder)] == ["Transformer", "Pooling"]


def test_no_such_model(tmp_path, says):
    with says(LoadError):
        to_continue(str(tmp_path / "nowhere"))
