import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch import nn
from torch.nn import functional as F

from likewise.encoder.build import build_encoder
from likewise.encoder.modules import with_modules, without_training_head
from likewise.encoder.text_cnn import TextCNN
from likewise.encoder.training_modules import (
    FastDropout,
    NoisyWords,
    PairClassifier,
    Predictor,
    Projector,
    TrainingHead,
    dropped,
)


def test_head_acts_in_training_alone():
    head = TrainingHead(4)
    x = torch.randn(3, 4)
    assert torch.equal(head.eval()({"sentence_embedding": x})["sentence_embedding"], x)
    trained = head.train()({"sentence_embedding": x})["sentence_embedding"]
    assert torch.allclose(trained, torch.tanh(x @ head.linear.weight.T + head.linear.bias))


def test_logits_of_u_v_and_their_distance():
    head = PairClassifier(2, 2)
    with torch.no_grad():
        head.linear.weight.copy_(torch.tensor([[1.0, 0, 0, 0, 0, 10.0], [0, 0, 2.0, 0, 100.0, 0]]))
        head.linear.bias.copy_(torch.tensor([0.5, 0.0]))
    found = head.logits(torch.tensor([[1.0, 2.0]]), torch.tensor([[4.0, -1.0]]))
    # |u - v| = (3, 3): 1 * 1 + 10 * 3 + 0.5 and 2 * 4 + 100 * 3.
    assert found.tolist() == [[31.5, 308.0]]


def test_it_is_kept_in_checkpoints_and_not_in_what_is_exported(tiny_base, tmp_path):
    encoder = build_encoder(str(tiny_base), pooling="mean", head=False)
    whole = with_modules(encoder, [*encoder, PairClassifier(32, 3)])
    whole.save_pretrained(str(tmp_path), create_model_card=False)
    saved = PairClassifier.load(str(tmp_path), subfolder="2_PairClassifier")
    assert torch.equal(saved.linear.weight, whole[-1].linear.weight)
    texts = ["the cat sees the dog"]
    assert (whole.encode(texts) == encoder.encode(texts)).all()
    assert [type(module).__name__ for module in without_training_head(whole)] == ["Transformer", "Pooling"]


def test_they_act_in_training_and_leave_evaluation_alone():
    words = {"token_embeddings": torch.randn(2, 3, 8), "attention_mask": torch.ones(2, 3, dtype=torch.long)}
    noisy = NoisyWords({"share": 1.0, "kinds": (1.0, 0.0, 0.0, 0.0)})
    before = words["token_embeddings"]
    assert not torch.equal(noisy.train()(dict(words))["token_embeddings"], before)
    assert noisy.eval()(dict(words))["token_embeddings"] is before
    heads = torch.nn.ModuleList([Projector(8, 32), Predictor(32, 16)])
    features = {"sentence_embedding": torch.randn(4, 8)}
    for head in heads.train():
        features = head(features)
    assert features["projection"].shape == features["prediction"].shape == (4, 32)
    features = {"sentence_embedding": torch.randn(4, 8)}
    for head in heads.eval():
        features = head(features)
    assert set(features) == {"sentence_embedding"}


def test_layers_are_those_of_section_4_1():
    kinds = [type(layer).__name__ for layer in Projector(8, 16).layers]
    assert kinds == ["Linear", "BatchNorm", "ReLU"] * 2 + ["Linear", "BatchNorm"]
    predictor = Predictor().layers
    assert [type(layer).__name__ for layer in predictor] == ["Linear", "BatchNorm", "ReLU", "Linear"]
    assert (predictor[0].in_features, predictor[0].out_features, predictor[3].out_features) == (4096, 1024, 4096)


def test_they_are_kept_in_checkpoints_and_stripped_from_what_is_exported(tmp_path):
    noise = {"share": 0.25, "kinds": [1.0, 0.0, 0.0, 0.0], "authors": True}
    modules = [NoisyWords(noise), Projector(8, 16), Predictor(16, 4)]
    for number, module in enumerate(modules):
        folder = tmp_path / str(number)
        folder.mkdir()
        module.save(str(folder))
        again = type(module).load(str(folder))
        assert all(torch.equal(again.state_dict()[name], value) for name, value in module.state_dict().items())
        assert again.get_config_dict() == module.get_config_dict()
    assert NoisyWords.load(str(tmp_path / "0")).settings == noise
    whole = SentenceTransformer(modules=[modules[0], TextCNN(8, (1,), 8), *modules[1:]])
    assert [type(module).__name__ for module in without_training_head(whole)] == ["TextCNN"]


@pytest.mark.parametrize("probability", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_zeros_by_chance_and_the_rest_scaled(probability, dtype):
    torch.manual_seed(1)
    values = torch.ones(1001, 333, dtype=dtype)  # no multiple of four
    made = dropped(values, probability)
    assert made.dtype == dtype
    assert made.unique().tolist() == [0.0, torch.tensor(1 / (1 - probability), dtype=dtype).item()]
    zeros, count = (made == 0).sum().item(), values.numel()
    spread = (count * probability * (1 - probability)) ** 0.5
    assert abs(zeros - count * probability) < 5 * spread + count / 2**17
    # Each of the four chances of a draw is like any other.
    for place in range(4):
        share = (made.flatten()[place::4] == 0).float().mean().item()
        assert share == pytest.approx(probability, abs=5 * 2 * spread / count)


def test_a_seed_fixes_the_mask_and_the_gradient_goes_through_it():
    values = torch.randn(64, 48, requires_grad=True)
    torch.manual_seed(3)
    made = dropped(values, 0.25)
    torch.manual_seed(3)
    assert torch.equal(made, dropped(values, 0.25))
    made.sum().backward()
    assert torch.allclose(values.grad, (made != 0) / 0.75)


def test_modules_drop_in_training_alone():
    module, values = nn.Dropout(0.4), torch.ones(300, 300)
    with FastDropout():
        torch.manual_seed(5)
        made = module(values)
        torch.manual_seed(5)
        assert torch.equal(made, dropped(values, 0.4))
        assert torch.equal(module.eval()(values), values)
        assert torch.equal(F.dropout(values, 1.0), torch.zeros(300, 300))
        assert torch.equal(F.dropout(values, 0.0), values)
    torch.manual_seed(5)
    assert not torch.equal(made, F.dropout(values, 0.4))


@pytest.mark.parametrize("mask", [None, "bool", "float"])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_drops_its_weights(mask, scale):
    torch.manual_seed(0)
    query, key = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8)
    value = torch.eye(7).expand(2, 3, 7, 7)  # so that the output is the weights
    there = torch.rand(2, 1, 5, 7) < 0.7
    there[..., 0] = True
    masks = {None: None, "bool": there, "float": torch.zeros(there.shape).masked_fill(~there, -torch.inf)}
    attend = F.scaled_dot_product_attention
    weights = attend(query, key, value, masks[mask], scale=scale)
    with FastDropout():
        assert torch.allclose(attend(query, key, value, masks[mask], scale=scale), weights)
        made = attend(query=query, key=key, value=value, attn_mask=masks[mask], dropout_p=0.25, scale=scale)
    kept = made != 0
    assert torch.allclose(made[kept], weights[kept] / 0.75, atol=1e-6)
    assert 0.5 < kept.sum() / (weights != 0).sum() < 0.95


def test_causal_attention_stays_causal():
    query = torch.randn(1, 2, 6, 4)
    with FastDropout():
        made = F.scaled_dot_product_attention(
            query, query, torch.eye(6).expand(1, 2, 6, 6), dropout_p=0.5, is_causal=True
        )
    assert torch.equal(made, made.tril())
