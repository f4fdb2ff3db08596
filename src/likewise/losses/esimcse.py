"""ESimCSE: a sentence and itself with repeated sub-words, against the batch and a queue of a momentum encoder."""

from collections.abc import Iterable
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.encoder.encoder_copy import MomentumQueue
from likewise.encoder.modules import find_part
from likewise.encoder.training_modules import TrainingHead
from likewise.losses import functional
from likewise.runs.processes import gather_rows


class ESimCSELoss(nn.Module):
    """NT-Xent of two columns, with the queue's vectors as further negatives (Wu et al. 2022, section 3.2).

    After each forward pass in training the momentum encoder takes a step towards the trained one, and its vectors of
    the sentences, of all processes, go into the queue.

    Args:
        model: the encoder; a `MomentumQueue` among its modules gives the queue, without one there is none.

    Inputs: two columns, sentences and the same ones with repetitions. No labels.
    """

    def __init__(self, model: SentenceTransformer, temperature: float = 0.05) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature
        self._parts: dict[str, Any] = {
            "encoder": model,
            "queue": find_part(model, MomentumQueue),
            "head": find_part(model, TrainingHead),
        }

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch, a scalar."""
        sentences, repeated = list(sentence_features)[:2]
        anchors = self.model(dict(sentences))["sentence_embedding"]  # (B, D)
        positives, offset = gather_rows(self.model(dict(repeated))["sentence_embedding"])
        queue: MomentumQueue | None = self._parts["queue"]
        earlier = queue.vectors() if queue is not None else anchors.new_zeros(0, anchors.shape[1])
        loss = functional.nt_xent_with_queue(anchors, positives, earlier, self.temperature, offset)
        if queue is not None and torch.is_grad_enabled():
            queue.follow(self._parts["encoder"])
            queue.push(gather_rows(queue.keys(sentences, self._parts["head"]))[0])
        return loss
