"""The loss of SNCSE: InfoNCE, and the sentence's own negation in one of four roles."""

from collections.abc import Iterable
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.encoder.encoder_copy import FrozenCopy
from likewise.encoder.modules import find_part
from likewise.errors import LikewiseError
from likewise.losses import functional
from likewise.runs.processes import gather_rows, share

NegationRole = Literal["soft-negative", "positive", "hard-negative", "none"]


class SNCSELoss(nn.Module):
    """The loss L_InfoNCE + lambda L_BML (SNCSE, equations 3 to 7), or one of the paper's comparisons.

    The two dropout views and the negations are rows of one forward pass.

    Args:
        role: what a negation is: a soft negative under the bidirectional margin loss (equation 7), a positive
            (equation 8), a hard negative (equation 9), or nothing (InfoNCE alone).
        alpha, beta: least and largest difference of the cosines of positive and negation.
        opposite_weight: weight of `functional.agreeing_opposites`, which is not in the paper.
        keep_weight: weight of the cosine distance between the two views of a sentence and the vector that the encoder
            gave it before training, which is not in the paper either. The negations are free to move.

    Inputs: one column of B sentences, K negations, Q opposites and their Q negations, with the entries 'rows' (K,), the
    sentences that the negations belong to, and 'pairs' (Q,), the places among the K of those that have an opposite.
    Returns the weighted parts by name.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        role: NegationRole = "soft-negative",
        temperature: float = 0.05,
        alpha: float = 0.1,
        beta: float = 0.3,
        weight: float = 1e-3,
        opposite_weight: float = 0.0,
        keep_weight: float = 0.0,
    ) -> None:
        super().__init__()
        self.model = model
        self.role, self.temperature = role, temperature
        self.alpha, self.beta, self.weight = alpha, beta, weight
        self.opposite_weight, self.keep_weight = opposite_weight, keep_weight
        # In a dict: the copy is a part of the encoder already, and no second time of the loss.
        copy = find_part(model, FrozenCopy)
        self._before: dict[str, Any] = {"copy": copy}
        if keep_weight and copy is None:
            raise LikewiseError("keep_weight needs a FrozenCopy among the model's modules: what is to be kept")

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Return the weighted parts of a batch's loss, by name."""
        features = dict(next(iter(sentence_features)))
        rows = features.pop("rows")
        pairs = features.pop("pairs", rows[:0])
        n_sentences = len(features["input_ids"]) - len(rows) - 2 * len(pairs)  # B

        def views(value: Any) -> Any:
            # B sentences twice, then K negations and 2Q opposites: (2B + K + 2Q, T)
            return torch.cat([value[:n_sentences], value]) if isinstance(value, Tensor) else value

        vectors = self.model({key: views(value) for key, value in features.items()})["sentence_embedding"]
        sizes = [n_sentences, n_sentences, len(rows), len(pairs), len(pairs)]
        anchors, positives, negations, opposites, opposite_negations = vectors.split(sizes)
        found = self.parts(anchors, positives, negations, rows)
        if self.opposite_weight:
            agreeing = functional.agreeing_opposites(
                anchors[rows[pairs]], negations[pairs], opposites, opposite_negations, self.temperature
            )
            found["opposites"] = self.opposite_weight * agreeing * share(len(pairs))
        if self.keep_weight:
            first = {k: v[:n_sentences] if isinstance(v, Tensor) else v for k, v in features.items()}
            targets = self._before["copy"].encode(first).repeat(2, 1)  # (2B, D), for both views
            found["keep"] = self.keep_weight * functional.cosine_distance(torch.cat([anchors, positives]), targets)
        return found

    def parts(self, anchors: Tensor, positives: Tensor, negations: Tensor, rows: Tensor) -> dict[str, Tensor]:
        """Return loss parts of anchors (B, D), positives (B, D), and negations (K, D) of the sentences `rows` (K,)."""
        everywhere, offset = gather_rows(positives)
        if self.role == "hard-negative":
            loss = functional.nt_xent_with_hard_negative(anchors, everywhere, negations, rows, self.temperature, offset)
            return {"contrastive": loss}
        found = {"contrastive": functional.nt_xent(anchors, everywhere, self.temperature, offset)}
        if self.role == "soft-negative":
            margin = functional.bidirectional_margin(anchors[rows], positives[rows], negations, self.alpha, self.beta)
            found["soft_negative"] = self.weight * margin * share(len(rows))
        elif self.role == "positive":
            # Gathered also where there are none here: every process takes part.
            others, first = gather_rows(negations, ragged=True)
            loss = others.sum() * 0.0
            if len(rows):
                loss = loss + functional.nt_xent(anchors[rows], others, self.temperature, first)
            found["negation"] = loss * share(len(rows))
        return found
