"""Two views of a sentence under dropout, the positive pair of SimCSE and SNCSE.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.inference.encoding import Precision


def dropout_views(
    model: SentenceTransformer,
    sentences: Sequence[str],
    *,
    seed: int,
    batch_size: int = 64,
    precision: Precision | None = None,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Encode each sentence twice with dropout on.

    Args:
        model: the encoder; its modes and the global random state are left as they were.
        sentences: S strings.
        seed: fixes the dropout.
        batch_size, precision: as in `likewise.inference.encode`.

    Returns:
        Two matrices (S, D) float32; None where the model has no dropout, so that both would be equal.
    """
    import torch
    from torch.nn.modules.batchnorm import _BatchNorm

    from likewise.inference.encoding import autocast, undisturbed

    if not any(isinstance(module, torch.nn.Dropout) and module.p > 0 for module in model.modules()):
        return None
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))  # batches of one length pad little
    views: list[np.ndarray] = []
    with undisturbed(model), autocast(model, precision), torch.inference_mode():
        torch.manual_seed(seed)
        for module in model.modules():
            # Attention layers read their own flag. A batch norm would learn from what it sees.
            module.training = not isinstance(module, _BatchNorm)
        for _ in range(2):
            rows: list[Any] = []
            for start in range(0, len(order), batch_size):
                features = model.preprocess([sentences[i] for i in order[start : start + batch_size]])
                features = {
                    name: value.to(model.device) if isinstance(value, torch.Tensor) else value
                    for name, value in features.items()
                }
                rows.append(model(features)["sentence_embedding"].float().cpu().numpy())  # (B, D)
            view = np.empty((len(order), rows[0].shape[1]), dtype=np.float32)
            view[order] = np.concatenate(rows)
            views.append(view)
    return views[0], views[1]
