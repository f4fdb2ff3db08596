"""Distillation: a sentence vector learns to match another encoder's vector of the same sentence."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from likewise.losses import functional
from likewise.losses.encoder_loss import EncoderLoss


class DistillationLoss(EncoderLoss):
    """The mean of 1 - cos(vector, vector of a teacher), which is a `FrozenCopy` among the encoder's modules.

    The encoder learns without dropout: what it should give is one vector, and not two views. Its own probability stays
    in its configuration, for whoever trains it next.

    Inputs: two columns, the sentences as tokens of the encoder and as tokens of the teacher. No labels.
    """

    def vectors(self, features: dict[str, Any]) -> Tensor:
        """Encode tokens (B, T) as sentence vectors (B, D), without dropout."""
        self.encoder[0].eval()  # the trainer turns it on again before each step
        return super().vectors(features)

    def loss(self, own: dict[str, Any], plain: dict[str, Any]) -> Tensor:
        """Return the mean distance of the encoder's vectors from the teacher's, a scalar."""
        return functional.cosine_distance(self.vectors(own), self.teacher.encode(plain))


class AnchoredLoss(DistillationLoss):
    """The squared error of the cosines of scored pairs, and the weighted distance of all vectors from the teacher's.

    Inputs: four columns, the first and the second sentences as tokens of the encoder, then both as tokens of the
    teacher; and the targets (B,) of the cosines. The option `anchor` is the weight of the distance.
    """

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> dict[str, Tensor]:
        """Return the weighted parts of a batch's loss, by name: {'scores': scalar, 'anchor': scalar}."""
        assert labels is not None
        first, second, *plain = sentence_features
        one, other = self.vectors(first), self.vectors(second)
        error = F.mse_loss(F.cosine_similarity(one, other), labels.float())
        distances = [
            functional.cosine_distance(vectors, self.teacher.encode(tokens))
            for vectors, tokens in zip((one, other), plain, strict=True)
        ]
        return {"scores": error, "anchor": self.options.anchor * (distances[0] + distances[1]) / 2}
