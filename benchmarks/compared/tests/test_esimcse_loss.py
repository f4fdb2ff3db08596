import torch

from compared.esimcse import ESimCSEOptions
from compared.esimcse_loss import ESimCSELoss, MomentumQueue
from likewise.encoder.build import build_encoder
from likewise.losses import functional


def tokens(encoder, texts):
    return dict(encoder.tokenizer(texts, padding=True, return_tensors="pt"))


def test_the_queue_fills_with_the_momentum_encoder_s_vectors_of_earlier_batches(tiny_base, sentences):
    encoder = build_encoder(str(tiny_base), head=True, dropout=0.0).train()
    queue = MomentumQueue.of(encoder, size=6, dimension=32, momentum=0.5)
    encoder.append(queue)
    loss = ESimCSELoss(encoder, ESimCSEOptions(temperature=0.1))
    batches = [[tokens(encoder, sentences[i : i + 4]), tokens(encoder, sentences[i + 50 : i + 54])] for i in (0, 4)]
    expected = []  # of the queue
    for sentence, repeated in batches:
        with torch.no_grad():
            h, p = (encoder(dict(column))["sentence_embedding"] for column in (sentence, repeated))
            earlier = torch.tensor(expected[-6:]).reshape(-1, 32)
            oracle = functional.nt_xent(h, torch.cat([p, earlier]), 0.1)
        assert torch.allclose(loss([sentence, repeated]), oracle, atol=1e-5)
        expected += queue.keys(sentence, encoder[2]).tolist()
        assert torch.allclose(queue.vectors(), torch.tensor(expected[-6:]), atol=1e-6)
        with torch.no_grad():
            next(encoder[0].parameters()).mul_(1.1)  # as if an update had come between


def test_nothing_is_queued_without_gradients_and_there_may_be_no_queue(tiny_base, sentences):
    encoder = build_encoder(str(tiny_base), head=False, dropout=0.0).train()
    batch = [tokens(encoder, sentences[:3]), tokens(encoder, sentences[3:6])]
    plain = ESimCSELoss(encoder, ESimCSEOptions())(batch)
    queue = MomentumQueue.of(encoder, size=6, dimension=32)
    encoder.append(queue)
    with torch.no_grad():
        assert torch.allclose(ESimCSELoss(encoder, ESimCSEOptions())(batch), plain, atol=1e-5)
    assert len(queue.vectors()) == 0
    assert not queue.vectors().requires_grad
