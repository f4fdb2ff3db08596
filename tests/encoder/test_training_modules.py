import torch
from sentence_transformers import SentenceTransformer

from likewise.augment.noise_options import WordNoise
from likewise.encoder.build import build_encoder
from likewise.encoder.modules import with_modules, without_training_head
from likewise.encoder.text_cnn import TextCNN
from likewise.encoder.training_modules import NoisyWords, PairClassifier, Predictor, Projector, TrainingHead


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
    noise = WordNoise(share=0.25)
    modules = [NoisyWords(noise.to_dict()), Projector(8, 16), Predictor(16, 4)]
    for number, module in enumerate(modules):
        folder = tmp_path / str(number)
        folder.mkdir()
        module.save(str(folder))
        again = type(module).load(str(folder))
        assert all(torch.equal(again.state_dict()[name], value) for name, value in module.state_dict().items())
        assert again.get_config_dict() == module.get_config_dict()
    assert NoisyWords.load(str(tmp_path / "0")).noise == noise
    whole = SentenceTransformer(modules=[modules[0], TextCNN(8, (1,), 8), *modules[1:]])
    assert [type(module).__name__ for module in without_training_head(whole)] == ["TextCNN"]
