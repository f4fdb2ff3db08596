"""The memory of a training: pages that the process keeps, and large batches that are encoded in chunks.

A large batch can be encoded in chunks, so that its memory equals one chunk's (Gao et al. 2021, "Scaling Deep
Contrastive Learning Batch Size under Memory Limited Setup"): the loss needs the vectors of the whole batch and the
activations of none. Each chunk is a checkpoint of torch: its activations are dropped after the forward pass and made
again, under the same dropout masks, when the gradient reaches it. The gradient equals the whole batch's; the price is
a second forward pass.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as recomputed

from likewise.encoder.modules import Features, forward_replaced, modes_restored

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_LARGEST = (1 << 30, 1 << 25)  # bytes; some releases of glibc refuse more than the second


@cache
def keep_pages() -> bool:
    """Let this process keep freed memory; return whether this is supported.

    glibc allocates separate pages for a large tensor, and returns them to the system when the tensor is freed. A
    training step allocates and frees hundreds of tensors, and the system clears each page again before the next step,
    which takes a seventh of the time of a step. The setting is made once per process, and only on Linux with glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):  # another C library, such as musl, has no mallopt
        mallopt = ctypes.CDLL(None).mallopt
        changed = any(mallopt(_MMAP_THRESHOLD, size) for size in _LARGEST)
        return changed and bool(mallopt(_TRIM_THRESHOLD, (1 << 31) - 1))
    return False


@contextmanager
def in_chunks(model: nn.Module, rows: int) -> Iterator[None]:
    """Let an encoder process its batches in chunks of rows in a `with` block; 0 has no effect."""
    if not rows:
        yield
        return
    whole = model.forward

    def forward(features: Features, **settings: object) -> Features:
        size = len(features["input_ids"])
        if size <= rows or not torch.is_grad_enabled():
            return whole(features, **settings)

        modes = {module: module.training for module in model.modules()}

        def vectors(chunk: Features) -> Tensor:
            with modes_restored(model):
                for module, mode in modes.items():
                    module.training = mode  # dropout may be off for this pass alone, and on when the gradient comes
                embedding: Tensor = whole(dict(chunk), **settings)["sentence_embedding"]
            return embedding

        pieces: list[Tensor] = [
            recomputed(vectors, _part(features, size, start, start + rows), use_reentrant=False)
            for start in range(0, size, rows)
        ]
        return features | {"sentence_embedding": torch.cat(pieces)}

    with forward_replaced(model, forward):
        yield


def _part(features: Features, size: int, start: int, end: int) -> Features:
    """Return some rows of features (B, T), without the padding that the longer ones needed."""
    length = features["input_ids"].shape[1]
    columns = features["attention_mask"][start:end].any(dim=0).nonzero()
    longest = int(columns.max()) + 1 if len(columns) else length
    part = dict(features)
    for name, value in features.items():
        if isinstance(value, Tensor) and value.ndim and len(value) == size:
            rows = value[start:end]
            part[name] = rows[:, :longest] if rows.ndim > 1 and rows.shape[1] == length else rows
    return part
