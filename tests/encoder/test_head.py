import torch

from likewise.encoder.build import build_encoder
from likewise.encoder.head import TrainingHead, without_training_head


def test_head_acts_in_training_alone():
    head = TrainingHead(4)
    x = torch.randn(3, 4)
    assert torch.equal(head.eval()({"sentence_embedding": x})["sentence_embedding"], x)
    trained = head.train()({"sentence_embedding": x})["sentence_embedding"]
    assert torch.allclose(trained, torch.tanh(x @ head.linear.weight.T + head.linear.bias))


def test_stripped_encoder_gives_what_the_whole_one_gave_in_evaluation(tiny_base):
    model = build_encoder(str(tiny_base), head=True).eval()
    bare = without_training_head(model)
    assert len(model) == 3
    assert len(bare) == 2
    texts = ["the cat sees a dog", "the river"]
    assert torch.equal(torch.tensor(model.encode(texts)), torch.tensor(bare.encode(texts)))
