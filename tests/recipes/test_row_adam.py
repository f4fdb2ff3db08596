import pytest
import torch
from torch import nn

from likewise.recipes.optimizers import RowAdam


def run(make, sparse=False, steps=6):
    """Train a table on some of its rows and a layer; return both."""
    torch.manual_seed(0)
    table, layer = nn.Embedding(9, 4, sparse=sparse), nn.Linear(4, 1)
    optimizers = make(table, layer)
    generator = torch.Generator().manual_seed(1)
    for step in range(steps):
        rows = torch.randint(0, 4 + step % 2, (5,), generator=generator)
        layer(table(rows)).square().sum().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return table.weight.detach(), layer.weight.detach()


@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_torchs_sparse_adam_on_tables_and_its_adam_elsewhere(sparse):
    def own(table, layer):
        groups = [{"params": table.parameters(), "lr": 0.1, "rows": True}, {"params": layer.parameters()}]
        return [RowAdam(groups, lr=0.01)]

    def torchs(table, layer):
        return [
            torch.optim.SparseAdam(table.parameters(), lr=0.1),
            torch.optim.Adam(layer.parameters(), lr=0.01),
        ]

    for found, wanted in zip(run(own, sparse), run(torchs, sparse=True), strict=True):
        assert torch.allclose(found, wanted, atol=1e-6)
