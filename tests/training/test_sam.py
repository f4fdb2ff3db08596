import torch

from likewise.encoder.training_modules import MaskTape, dropped
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


def test_a_tape_gives_the_masks_of_the_first_pass_and_the_chance_behind_them():
    values = torch.ones(7, 9)

    def one_pass(masks, size=9):
        torch.manual_seed(3)
        first = dropped(values[:, :size], 0.4, masks)
        between = torch.rand(2)
        return first, between, dropped(values, 0.1, masks)

    plain, tape = one_pass(None), MaskTape()
    recorded = one_pass(tape)
    tape.rewind()
    replayed = one_pass(tape)
    for made in (recorded, replayed):
        assert all(torch.equal(a, b) for a, b in zip(made, plain, strict=True))
    tape.rewind()
    other = one_pass(tape, size=5)  # a mask of another shape is drawn, as it would have been without a tape
    assert all(torch.equal(a, b) for a, b in zip(other[:2], one_pass(None, size=5)[:2], strict=True))
    torch.manual_seed(4)
    tape.rewind()
    assert torch.equal(dropped(values, 0.4, tape), plain[0])  # no chance of this pass is in it
