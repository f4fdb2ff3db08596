import math

import pytest
import torch

from likewise.encoder.text_cnn import TrainingAttention, attend


def algorithm_1(query, mask):
    """The paper's algorithm 1, line by line."""
    key = value = query
    mask = mask.unsqueeze(2)
    mask = torch.matmul(mask, mask.transpose(-2, -1))
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1))
    scores = scores / math.sqrt(d_k)
    scores = scores.masked_fill(mask == 0, 1e-9)
    scores = torch.sum(scores, dim=2, keepdim=True)
    return scores * value


def by_hand(vectors, mask):
    """Loops over the words, in Python's numbers."""
    out = torch.zeros_like(vectors)
    for b in range(len(vectors)):
        for i in range(vectors.shape[1]):
            importance = 0.0
            for j in range(vectors.shape[1]):
                both = mask[b, i] and mask[b, j]
                dot = sum(float(x) * float(y) for x, y in zip(vectors[b, i], vectors[b, j], strict=True))
                importance += dot / math.sqrt(vectors.shape[2]) if both else 1e-9
            out[b, i] = importance * vectors[b, i]
    return out


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(3)
    vectors = torch.randn(3, 5, 4, generator=generator, dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]])
    return vectors, mask


def test_it_is_algorithm_1_padding_included(batch):
    vectors, mask = batch
    assert torch.allclose(attend(vectors, mask), algorithm_1(vectors, mask.double()), rtol=1e-12, atol=1e-15)
    assert torch.allclose(attend(vectors, mask), by_hand(vectors, mask), rtol=1e-12, atol=1e-15)


def test_two_words_by_hand():
    vectors = torch.tensor([[[1.0, 0.0], [1.0, 1.0]]])
    # Scores [[1, 1], [1, 2]] / sqrt(2): importances 2 and 3 over sqrt(2).
    expected = torch.tensor([[[2.0, 0.0], [3.0, 3.0]]]) / math.sqrt(2)
    assert torch.allclose(attend(vectors, torch.ones(1, 2)), expected)


def test_padding_does_not_change_a_sentence_and_has_a_gradient(batch):
    vectors, mask = batch
    alone = attend(vectors[1:2, :3], mask[1:2, :3])
    assert torch.allclose(attend(vectors, mask)[1, :3], alone[0], atol=1e-8)
    vectors.requires_grad_()
    assert torch.autograd.gradcheck(lambda v: attend(v, mask), (vectors,))


def test_it_is_on_in_training_alone(batch):
    vectors, mask = batch
    trained, evaluated = (
        TrainingAttention().train(mode)({"token_embeddings": vectors, "attention_mask": mask})["token_embeddings"]
        for mode in (True, False)
    )
    assert torch.equal(trained, attend(vectors, mask))
    assert torch.equal(evaluated, vectors)
