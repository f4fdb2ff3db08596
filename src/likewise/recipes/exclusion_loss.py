"""The loss of `exclusion`: a cosine with targets that are composed of a teacher's vectors."""

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from likewise.losses import functional
from likewise.losses.encoder_loss import DistillationLoss


class ComposedLoss(DistillationLoss):
    """The mean of 1 - cos(vector, target), with targets composed of the teacher's vectors.

    The target of a sentence is the teacher's vector of a text, less a share of its vector of what is excluded, if
    anything; both have length 1.

    Inputs: the columns of `with_exclusions`, the first as tokens of the encoder, the others of the teacher. No labels.
    """

    def _loss(self, own: dict[str, Any], meant: dict[str, Any], *excluded: dict[str, Any]) -> Tensor:
        targets = F.normalize(self.teacher.encode(meant), dim=1)
        for features in excluded:
            less = F.normalize(self.teacher.encode(features), dim=1).to(targets.dtype)
            targets = targets.index_add(0, features["rows"], less, alpha=-self.options.excluded_weight)
        return functional.cosine_distance(self.vectors(own), targets)
