"""The loss of ESimCSE, and the momentum encoder's queue of its further negatives.

Wu et al. 2022, "ESimCSE: Enhanced Sample Building Method for Contrastive Learning of Unsupervised Sentence Embedding".
"""

from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from compared.esimcse import ESimCSEOptions
from likewise.encoder import FrozenCopy, TrainingHead, find_part
from likewise.encoder.modules import saved_modules
from likewise.losses import EncoderLoss, functional


class MomentumQueue(FrozenCopy):
    """The momentum encoder of ESimCSE and the queue of the vectors it made (section 3.2), first in, first out.

    The copy has no dropout, as in the authors' code.

    Args:
        momentum: lambda of theta_m <- lambda theta_m + (1 - lambda) theta_e.
    """

    queue: Tensor
    filled: Tensor

    def __init__(self, encoder: SentenceTransformer, size: int, dimension: int, momentum: float = 0.995) -> None:
        super().__init__(encoder)
        self.size, self.dimension, self.momentum = size, dimension, momentum
        self.register_buffer("queue", torch.zeros(size, dimension))  # (M, D), the oldest first
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))

    def vectors(self) -> Tensor:
        """Return the vectors in the queue, (up to M, D), the oldest first, as a copy."""
        return self.queue[self.size - int(self.filled) :].clone()

    @torch.no_grad()
    def push(self, vectors: Tensor) -> None:
        """Append vectors (B, D) to the queue, and drop the oldest."""
        self.queue.copy_(torch.cat([self.queue, vectors.to(self.queue.dtype)])[-self.size :])
        self.filled.fill_(min(self.size, int(self.filled) + len(vectors)))

    @torch.no_grad()
    def follow(self, encoder: nn.Module) -> None:
        """Update the copy's weights towards those of the trained encoder, by momentum."""
        trained = (parameter for module in saved_modules(encoder) for parameter in module.parameters())
        for own, other in zip(self.encoder.parameters(), trained, strict=True):
            own.lerp_(other, 1 - self.momentum)

    @torch.no_grad()
    def keys(self, features: dict[str, Any], head: TrainingHead | None = None) -> Tensor:
        """Encode tokens (B, T) as vectors (B, D) for the queue, through the trained encoder's head if any."""
        vectors = self.encode(features)
        return head({"sentence_embedding": vectors})["sentence_embedding"] if head else vectors


class ESimCSELoss(EncoderLoss[ESimCSEOptions]):
    """NT-Xent of two columns, with the queue's vectors as further negatives (Wu et al. 2022, section 3.2).

    l_i = -log exp(cos(h_i, h_i+) / tau) / (sum over j of exp(cos(h_i, h_j+) / tau) + sum over m of
    exp(cos(h_i, q_m) / tau)).

    After each forward pass in training the momentum encoder takes a step towards the trained one, and its vectors of
    the sentences, of all processes, go into the queue. A `MomentumQueue` among the encoder's modules gives both;
    without one there is no queue.

    Inputs: two columns, sentences and the same ones with repetitions. No labels.
    """

    def _loss(self, *columns: dict[str, Any]) -> Tensor:
        sentences, repeated = columns
        anchors = self.vectors(sentences)  # (B, D)
        positives, offset = self.gathered(self.vectors(repeated))
        queue = find_part(self.encoder, MomentumQueue)
        if queue:
            positives = torch.cat([positives, queue.vectors().to(positives.dtype)])
        loss = functional.nt_xent(anchors, positives, self.options.temperature, offset)
        if queue and torch.is_grad_enabled():
            queue.follow(self.encoder)
            queue.push(self.gathered(queue.keys(sentences, find_part(self.encoder, TrainingHead)))[0])
        return loss
