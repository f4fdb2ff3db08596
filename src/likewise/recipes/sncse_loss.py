"""The loss of SNCSE: contrastive, with the sentence's own negation as a soft negative.

Wang et al. 2022, "SNCSE: Contrastive Learning for Unsupervised Sentence Embedding with Soft Negative Samples".
"""

from typing import Any

import torch
from torch import Tensor

from likewise.losses import EncoderLoss, functional
from likewise.recipes.sncse import SNCSEOptions


class SNCSELoss(EncoderLoss[SNCSEOptions]):
    """The loss L_InfoNCE + lambda L_BML (SNCSE, equations 3 to 7), or one of the paper's comparisons.

    A negation is a soft negative under the bidirectional margin loss (equation 7), a positive (equation 8), a hard
    negative (equation 9), or nothing (InfoNCE alone). Not in the paper are `functional.agreeing_opposites`, and the
    distance between the two views of a sentence and its vector before training; the negations are free to move. In one
    prompt all of them are rows of one forward pass; in two, the first views of the sentences are a pass of their own.

    Inputs: the columns of `negation_views`, with the rows and pairs of the last. No labels.
    """

    def _loss(self, *columns: dict[str, Any]) -> dict[str, Tensor]:
        features, options = dict(columns[-1]), self.options
        rows = features.pop("rows")
        pairs = features.pop("pairs", rows[:0])
        n_sentences = len(features["input_ids"]) - len(rows) - 2 * len(pairs)  # B

        def first(value: Any) -> Any:
            return value[:n_sentences] if isinstance(value, Tensor) else value

        def views(value: Any) -> Any:
            # B sentences twice, then K negations and 2Q opposites: (2B + K + 2Q, T)
            return torch.cat([first(value), value]) if isinstance(value, Tensor) else value

        if len(columns) == 2:
            vectors = torch.cat([self.vectors(columns[0]), self.vectors(features)])
        else:
            vectors = self.vectors({key: views(value) for key, value in features.items()})
        sizes = [n_sentences, n_sentences, len(rows), len(pairs), len(pairs)]
        anchors, positives, negations, opposites, opposite_negations = vectors.split(sizes)
        found = self._contrast(anchors, positives, negations, rows)
        if options.opposite_weight:
            agreeing = functional.agreeing_opposites(
                anchors[rows[pairs]], negations[pairs], opposites, opposite_negations, options.temperature
            )
            found["opposites"] = options.opposite_weight * agreeing * self.share(len(pairs))
        if options.keep_weight:
            kept = [*columns[:-1], {key: first(value) for key, value in features.items()}]
            before = [self.teacher.encode(one) for one in kept]  # (B, D) of each prompt
            targets = torch.cat([before[0], before[-1]])  # (2B, D), for both views
            found["keep"] = options.keep_weight * functional.cosine_distance(torch.cat([anchors, positives]), targets)
        return found

    def _contrast(self, anchors: Tensor, positives: Tensor, negations: Tensor, rows: Tensor) -> dict[str, Tensor]:
        """Return loss parts of anchors (B, D), positives (B, D), and negations (K, D) of the sentences `rows` (K,)."""
        tau, role = self.options.temperature, self.options.negation
        everywhere, offset = self.gathered(positives)
        if role == "hard-negative":
            loss = functional.nt_xent_with_hard_negative(anchors, everywhere, negations, rows, tau, offset)
            return {"contrastive": loss}
        found = {"contrastive": functional.nt_xent(anchors, everywhere, tau, offset)}
        if role == "soft-negative":
            bounds = self.options.alpha, self.options.beta
            margin = functional.bidirectional_margin(anchors[rows], positives[rows], negations, *bounds)
            found["soft_negative"] = self.options.weight * margin * self.share(len(rows))
        elif role == "positive":
            # Gathered also where there are none here: every process takes part.
            others, first = self.gathered(negations, ragged=True)
            loss = others.sum() * 0.0
            if len(rows):
                loss = loss + functional.nt_xent(anchors[rows], others, tau, first)
            found["negation"] = loss * self.share(len(rows))
        return found
