"""The loss of contrastive tension: sentence-transformers' own, with both encoders in the checkpoints."""

from typing import Any

from sentence_transformers.sentence_transformer.losses import ContrastiveTensionLoss
from torch import Tensor, nn

from likewise.encoder import EncoderCopy, find_part
from likewise.runs import processes


class TensionLoss(ContrastiveTensionLoss):
    """The sum over the pairs of all processes, whose gradients are averaged."""

    def __init__(self, encoder: Any) -> None:
        placeholder: Any = nn.Identity()
        super().__init__(placeholder)
        # The copy that the base class makes would be in no checkpoint: it is replaced by the encoder's.
        copy: Any = find_part(encoder, EncoderCopy)
        self.model1, self.model2 = copy.encoder, encoder

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the loss of a batch, a scalar."""
        found: Tensor = super().forward(*args, **kwargs) * processes.count()
        return found
