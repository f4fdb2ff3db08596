import torch
from pytorch_optimizer import SAM

from likewise.training.trainer import TwoPassSAM


def test_a_step_is_the_gradient_at_the_worst_point_near_by():
    """f(w) = sum(a w^2): by hand, w - lr * f'(w + rho f'(w) / |f'(w)|)."""
    a = torch.tensor([1.0, 3.0])
    w = torch.nn.Parameter(torch.tensor([0.5, -0.2]))
    start = w.detach().clone()
    sam = TwoPassSAM([w], torch.optim.SGD, rho=0.1, lr=0.01)
    (a * w**2).sum().backward()
    sam.first_step(zero_grad=True)
    gradient = 2 * a * start
    worst = start + 0.1 * gradient / gradient.norm()
    assert torch.allclose(w.detach(), worst)
    (a * w**2).sum().backward()
    sam.step()
    assert torch.allclose(w.detach(), start - 0.01 * 2 * a * worst)


def test_state_goes_through_a_checkpoint():
    def run(steps, state=None, w=None):
        w = torch.nn.Parameter(torch.tensor([0.5, -0.2]) if w is None else w)
        sam = TwoPassSAM([w], torch.optim.AdamW, rho=0.1, lr=0.01)
        if state:
            sam.load_state_dict(state)
        for _ in range(steps):
            for half in (lambda: sam.first_step(zero_grad=True), sam.step):
                (w**4).sum().backward()
                half()
            sam.zero_grad()
        return w.detach().clone(), sam.state_dict()

    whole, _ = run(6)
    half, state = run(3)
    rest, _ = run(3, state, half)
    assert torch.equal(whole, rest)


def test_the_worst_point_is_that_of_the_optimizer_that_is_extended_to_the_bit():
    found = []
    for step in (SAM.first_step, TwoPassSAM.first_step):
        torch.manual_seed(3)
        weights = [torch.nn.Parameter(torch.randn(*shape)) for shape in ((7, 5), (300, 40), (1,))]
        unused = torch.nn.Parameter(torch.ones(2))
        sam = TwoPassSAM([{"params": weights[:2], "rho": 0.2}, {"params": [weights[2], unused]}], torch.optim.AdamW)
        sum((one**3).sum() for one in weights).backward()
        step(sam, zero_grad=True)
        assert all(one.grad is None for one in weights)
        assert torch.equal(unused, torch.ones(2))
        found.append([one.detach().clone() for one in weights])
    assert all(map(torch.equal, *found))
