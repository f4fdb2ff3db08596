import torch
from sentence_transformers import SentenceTransformer

from likewise.augment.word_noise import WordNoise
from likewise.encoder.head import without_training_head
from likewise.encoder.siamese import NoisyWords, Predictor, Projector
from likewise.encoder.text_cnn import TextCNN


def test_they_act_in_training_and_leave_evaluation_alone():
    words = {"token_embeddings": torch.randn(2, 3, 8), "attention_mask": torch.ones(2, 3, dtype=torch.long)}
    noisy = NoisyWords(WordNoise(share=1.0, kinds=(1.0, 0.0, 0.0, 0.0)))
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
    assert kinds == ["Linear", "BatchNorm1d", "ReLU"] * 2 + ["Linear", "BatchNorm1d"]
    predictor = Predictor().layers
    assert [type(layer).__name__ for layer in predictor] == ["Linear", "BatchNorm1d", "ReLU", "Linear"]
    assert (predictor[0].in_features, predictor[0].out_features, predictor[3].out_features) == (4096, 1024, 4096)


def test_they_are_kept_in_checkpoints_and_stripped_from_what_is_exported(tmp_path):
    noise = WordNoise(share=0.25)
    modules = [NoisyWords(noise), Projector(8, 16), Predictor(16, 4)]
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
