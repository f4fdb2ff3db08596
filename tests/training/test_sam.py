import torch

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
