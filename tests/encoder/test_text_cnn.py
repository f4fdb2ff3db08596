import numpy as np
import pytest
import torch

from likewise.encoder.text_cnn import GROUP, TextCNN


def by_hand(cnn, words):
    """The vector of one sentence (L, D) of its words alone, windows taken one by one."""
    size = words.shape[1]
    found = []
    for bank in cnn.banks:
        weight, bias = bank.weight.detach().double().numpy(), bank.bias.detach().double().numpy()
        region = weight.shape[2]
        if cnn.edges:
            zeros = np.zeros((region - 1, size))
            padded = np.concatenate([zeros, words if len(words) else np.zeros((1, size)), zeros])
        else:
            padded = np.concatenate([words, np.zeros((max(0, region - len(words)), size))])
        windows = [padded[i : i + region] for i in range(len(padded) - region + 1)]
        values = [[(weight[f].T * window).sum() + bias[f] for f in range(len(weight))] for window in windows]
        found.append(np.maximum(np.array(values), 0).max(axis=0))
    return np.concatenate(found)


@pytest.fixture(params=[True, False], ids=["edges", "inside"])
def cnn(request):
    torch.manual_seed(0)
    return TextCNN(dimension=3, regions=(1, 1, 2, 4), filters=5, edges=request.param).double()


def encode(cnn, vectors, mask):
    return cnn({"token_embeddings": vectors, "attention_mask": mask})["sentence_embedding"].detach()


def test_windows_by_hand_also_where_a_sentence_is_shorter_than_a_region(cnn):
    vectors = torch.randn(4, 6, 3, dtype=torch.float64)  # what stands at the padding must not matter
    lengths = [6, 3, 1, 0]
    mask = torch.tensor([[1] * n + [0] * (6 - n) for n in lengths])
    found = encode(cnn, vectors, mask)
    assert found.shape == (4, 20)
    assert cnn.get_embedding_dimension() == 20
    for row, n in enumerate(lengths):
        assert np.allclose(found[row], by_hand(cnn, vectors[row, :n].numpy())), n


def test_a_sentence_has_one_vector_in_every_batch(cnn):
    vectors = torch.randn(2, 9, 3, dtype=torch.float64)
    mask = torch.tensor([[1] * 9, [1, 1] + [0] * 7])
    alone = encode(cnn, vectors[1:, :2], mask[1:, :2])
    assert torch.allclose(encode(cnn, vectors, mask)[1], alone[0])


def test_saved_and_loaded(cnn, tmp_path):
    cnn.save(str(tmp_path))
    again = TextCNN.load(str(tmp_path)).double()
    assert again.edges == cnn.edges
    vectors, mask = torch.randn(1, 4, 3, dtype=torch.float64), torch.ones(1, 4)
    assert torch.allclose(encode(again, vectors, mask), encode(cnn, vectors, mask))


def test_paper_size():
    assert TextCNN(50).get_embedding_dimension() == 1800


def test_in_training_groups_of_near_equal_length_give_the_same_vectors_in_the_same_order(cnn):
    generator = torch.Generator().manual_seed(3)
    vectors = torch.randn(3 * GROUP + 5, 12, 3, generator=generator, dtype=torch.float64)
    lengths = torch.randint(0, 13, (len(vectors),), generator=generator)
    mask = (torch.arange(12)[None] < lengths[:, None]).long()
    features = {"token_embeddings": vectors, "attention_mask": mask}
    whole = cnn.eval()(dict(features))["sentence_embedding"]
    grouped = cnn.train()(dict(features))["sentence_embedding"]
    assert torch.allclose(grouped, whole, atol=1e-6)
    whole.square().sum().backward()
    wanted = [parameter.grad.clone() for parameter in cnn.parameters()]
    cnn.zero_grad()
    grouped.square().sum().backward()
    assert all(torch.allclose(p.grad, w, rtol=1e-4, atol=1e-4) for p, w in zip(cnn.parameters(), wanted, strict=True))
