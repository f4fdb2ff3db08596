"""Dropout that draws its masks faster on a processor.

A training step of a small transformer draws some forty million chances, and torch draws them one at a time. Here each
draw of 64 bits makes four. A probability is kept to 1/65,536. The draws come from torch's global generator, so that a
seed fixes them and a checkpoint restores them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from likewise.encoder.modules import forward_replaced
from likewise.runs.whole_files import Record

_LEVELS = 1 << 16


def dropped(values: Tensor, probability: float) -> Tensor:
    """Return a tensor of any shape with zeros by chance, and the rest scaled by 1 / (1 - probability)."""
    words = torch.empty(-(-values.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None)
    chances = words.view(torch.int16)[: values.numel()].view(values.shape)
    kept = chances >= round(probability * _LEVELS) - _LEVELS // 2
    return values * kept.to(values.dtype).mul_(1 / (1 - probability))


class FastDropout(TorchFunctionMode):
    """A `with` block in which torch's dropout and attention call `dropped` for tensors on a CPU.

    It holds for the thread that entered it, and for every model, since they all call these two functions of torch.
    """

    def __torch_function__(
        self, function: Callable[..., object], types: object, args: tuple[Any, ...] = (), kwargs: Record | None = None
    ) -> object:
        """Call a function of torch, or compute the same with masks of our own."""
        kwargs = kwargs or {}
        ours = _OURS.get(function)
        first = args[0] if args else kwargs.get("input", kwargs.get("query"))
        if ours is None or first is None or first.device.type != "cpu":
            return function(*args, **kwargs)
        return ours(*args, **kwargs)


@contextmanager
def fast_dropout(model: nn.Module) -> Iterator[None]:
    """Let a model's own forward passes draw their masks by `dropped` in a `with` block.

    One that computes its layers again for the gradient stays as it is: the second pass is not in its `forward`.
    """
    if any(getattr(part, "gradient_checkpointing", False) for part in model.modules()):
        yield
        return
    whole = model.forward

    def forward(*args: object, **settings: object) -> object:
        with FastDropout():
            return whole(*args, **settings)

    with forward_replaced(model, forward):
        yield


def _dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if inplace or not training or not 0 < p < 1:
        return F.dropout(input, p, training, inplace)
    return dropped(input, p)


def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, **form: Any
) -> Tensor:
    """Return the mixed values (..., T, W) of queries (..., T, W), keys and values (..., S, W)."""
    scale = form.pop("scale", None)
    if not dropout_p or any(form.values()):  # causal, or with fewer keys than queries: torch's own
        return F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, scale=scale, **form)
    scores = (query * (scale or query.shape[-1] ** -0.5)) @ key.transpose(-2, -1)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return dropped(torch.softmax(scores, -1), dropout_p).to(value.dtype) @ value


_OURS: dict[Callable[..., object], Callable[..., Tensor]] = {
    F.dropout: _dropout,
    F.scaled_dot_product_attention: _attention,
}
