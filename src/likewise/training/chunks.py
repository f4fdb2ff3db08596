"""Gradient caching: a batch is encoded in chunks, so that its memory is that of one chunk.

Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup": the loss needs the vectors
of the whole batch and the activations of none. Here each chunk is a checkpoint of torch: its activations are dropped
after the forward pass and made again, under the same dropout masks, when the gradient reaches it. The gradient is that
of the whole batch; the price is a second forward pass.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from likewise.encoder.modules import modes_restored


@contextmanager
def in_chunks(model: nn.Module, rows: int) -> Iterator[None]:
    """Let an encoder take its batches in chunks of some rows in a `with` block; 0 leaves it as it is."""
    if not rows:
        yield
        return
    before, whole = vars(model).get("forward"), model.forward

    def forward(features: dict[str, Any], **settings: Any) -> dict[str, Any]:
        size = len(features["input_ids"])
        if size <= rows or not torch.is_grad_enabled():
            return whole(features, **settings)

        modes = {module: module.training for module in model.modules()}

        def vectors(chunk: dict[str, Any]) -> Tensor:
            with modes_restored(model):
                for module, mode in modes.items():
                    module.training = mode  # dropout may be off for this pass alone, and on when the gradient comes
                found: Tensor = whole(dict(chunk), **settings)["sentence_embedding"]
            return found

        pieces: list[Any] = [
            checkpoint(vectors, _part(features, size, start, start + rows), use_reentrant=False)
            for start in range(0, size, rows)
        ]
        return features | {"sentence_embedding": torch.cat(pieces)}

    vars(model)["forward"] = forward
    try:
        yield
    finally:
        if before is None:
            del vars(model)["forward"]
        else:
            vars(model)["forward"] = before


def _part(features: dict[str, Any], size: int, start: int, end: int) -> dict[str, Any]:
    """Return some rows of features (B, T), without the padding that the longer ones needed."""
    length = features["input_ids"].shape[1]
    columns = features["attention_mask"][start:end].any(dim=0).nonzero()
    longest = int(columns.max()) + 1 if len(columns) else length
    found = dict(features)
    for name, value in features.items():
        if isinstance(value, Tensor) and value.ndim and len(value) == size:
            rows = value[start:end]
            found[name] = rows[:, :longest] if rows.ndim > 1 and rows.shape[1] == length else rows
    return found
