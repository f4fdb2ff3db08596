import torch
import torch.multiprocessing as mp

from likewise.encoder.build import build_encoder
from likewise.losses import functional
from likewise.recipes.arccse import ARCCSE, ArcCSEOptions, two_views


def arccon(model, **settings):
    return ARCCSE.build_loss(model, ArcCSEOptions(triplet_weight=0, **settings))


class Recorder(torch.nn.Module):
    """Stands in for an encoder: the identity, and the sizes of its forward passes."""

    def __init__(self):
        super().__init__()
        self.sizes = []
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, features):
        self.sizes.append(len(features["x"]))
        return {"sentence_embedding": self.dropout(features["x"])}


def test_both_views_come_from_one_forward_with_different_dropout():
    model = Recorder().train()
    first, second = two_views(arccon(model), {"x": torch.ones(4, 50)}).chunk(2)
    assert model.sizes == [8]
    assert not torch.equal(first, second)


def test_second_view_without_dropout():
    model = Recorder().train()
    first, second = two_views(arccon(model, positive_dropout=False), {"x": torch.ones(4, 50)}).chunk(2)
    assert (first == 0).any()
    assert torch.equal(second, torch.ones(4, 50))
    assert model.dropout.training


def test_on_a_real_encoder_the_gradient_reaches_the_head(tiny_base):
    model = build_encoder(str(tiny_base), head=True).train()
    features = model.tokenizer(["the cat", "a dog", "the old river"], padding=True, return_tensors="pt")
    arccon(model)([dict(features)])["contrastive"].backward()
    assert model[2].linear.weight.grad.abs().sum() > 0


def _rank(rank, world, path, queue):
    torch.distributed.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world)
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    mine = x[2 * rank : 2 * rank + 2].clone().requires_grad_()
    loss = arccon(Recorder().eval(), margin=10, temperature=0.1)([{"x": mine}])["contrastive"]
    loss.backward()
    # By value: a shared tensor would outlive its process.
    queue.put((rank, loss.item(), mine.grad.tolist()))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def test_two_processes_gather_negatives_with_gradients(tmp_path):
    context = mp.get_context("spawn")
    queue = context.Queue()
    workers = [context.Process(target=_rank, args=(r, 2, tmp_path / "store", queue)) for r in range(2)]
    for worker in workers:
        worker.start()
    got = sorted(queue.get(timeout=600) for _ in workers)
    for worker in workers:
        worker.join(600)
        assert worker.exitcode == 0
    # The oracle: the whole batch in one process.
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0)).requires_grad_()
    whole = functional.arccon(x, x, 10, 0.1)
    whole.backward()
    assert torch.allclose(torch.tensor([g[1] for g in got]).mean(), whole, atol=1e-5)
    # Each process takes the mean of its own half: twice the gradient of the mean over all.
    assert torch.allclose(torch.tensor(got[0][2] + got[1][2]), 2 * x.grad, atol=1e-5)
