"""The losses of an adaptation on pairs of texts, as pure functions.

Letters of the shapes: B pairs of a batch, D embedding.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from likewise.losses.functional import add_angle, cosine_matrix

SAME_TEXT = 0.85
"""Two second texts with a higher cosine under the base may have the same meaning, so they are no negatives."""


def false_negatives(first: Tensor, second: Tensor, share: float = 0.95) -> Tensor:
    """Return the unsafe negatives of a batch, (B, B) bool, by the vectors of the frozen base.

    Text j is excluded from the negatives of text i if its cosine reaches `share` of the cosine of pair i (at least
    0.6), or if it nearly equals the positive of i. The filter by a share of the positive is from NV-Retriever (Moreira
    et al. 2024, section 4).

    Args:
        first, second: (B, D) the two texts of each pair under the base.
        share: Fraction of the positive's cosine.
    """
    cosines = cosine_matrix(first, second)  # (B, B)
    own = cosines.diagonal().clamp(min=0.6)[:, None]
    near = (cosines >= share * own) | (cosine_matrix(second, second) > SAME_TEXT)
    return near & ~torch.eye(len(first), dtype=torch.bool, device=first.device)


def filtered_contrast(
    first: Tensor, second: Tensor, left_out: Tensor, temperature: float = 0.05, margin_degrees: float = 0.0
) -> Tensor:
    """Return ArcCon in both directions over the pairs that are not excluded, as the mean over 2B rows.

    Args:
        first, second: (B, D) vectors; row i of both is a pair.
        left_out: (B, B) bool, from `false_negatives`.
        temperature: Temperature tau.
        margin_degrees: Margin m in degrees; 0 for NT-Xent.
    """
    cosines = cosine_matrix(first, second)  # (B, B)
    cosines = cosines + torch.diag(add_angle(cosines.diagonal(), margin_degrees) - cosines.diagonal())
    logits = (cosines / temperature).masked_fill(left_out, -torch.inf)
    own = torch.arange(len(first), device=first.device)
    return (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2


def similarities_keep(cosines: Tensor, targets: Tensor, temperature: float = 0.05) -> Tensor:
    """Return KL(targets || cosines) of the similarities of a batch, the mean of both directions.

    Args:
        cosines: (B, B) of the encoder that is trained.
        targets: (B, B) of a teacher, detached here.
        temperature: Temperature tau of both.
    """
    scaled, target = cosines / temperature, targets.detach() / temperature
    rows = F.kl_div(scaled.log_softmax(1), target.log_softmax(1), reduction="batchmean", log_target=True)
    columns = F.kl_div(scaled.T.log_softmax(1), target.T.log_softmax(1), reduction="batchmean", log_target=True)
    return (rows + columns) / 2
