"""The loss of ArcCSE: an angular margin between dropout twins, and entailment triplets of masked spans.

Zhang et al. 2022, "A Contrastive Framework for Learning Sentence Representations from Pairwise and Triple-wise
Perspective in Angular Space".
"""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from likewise.encoder.modules import dropout_off
from likewise.encoder.training_modules import VECTORS
from likewise.losses import EncoderLoss, functional
from likewise.recipes.arccse import ArcCSEOptions


class ArcCSELoss(EncoderLoss[ArcCSEOptions]):
    """The loss L_arccon + lambda L_triplet (ArcCSE, equation 5); either part may be left out.

    ArcCon (equation 3) compares each sentence with itself. The two views are two rows of one forward pass, so that each
    has its own dropout mask and the batch is padded and sent through the encoder once. With a margin of 0 it is
    NT-Xent, the loss of SimCSE. By the triplets (equation 4) a sentence is nearer to its less masked version than to
    the more masked one; without dropout, whose noise would hide the small difference between the two versions.

    Not in the paper is `functional.listwise_keep`: in both views the sentences of the batch stay as near to each other
    as a `FrozenCopy` among the encoder's modules has them.

    Inputs: the columns of `triplet_views`. No labels.
    """

    def _loss(self, sentences: dict[str, Any], *others: dict[str, Any]) -> dict[str, Tensor]:
        options, parts = self.options, dict[str, Tensor]()
        shortened, triplets = others[: options.positive_deletion > 0], others[options.positive_deletion > 0 :]
        if options.contrastive != "none":
            views = self.views(sentences, *shortened)
            anchors, positives = views["sentence_embedding"].chunk(2)
            margin = options.margin if options.contrastive == "arccon" else 0.0
            positives, offset = self.gathered(positives)
            parts["contrastive"] = functional.arccon(anchors, positives, margin, options.temperature, offset)
            if options.keep_weight and self.teacher:
                parts["keep"] = options.keep_weight * self._kept(
                    sentences, views.get("saved_embedding", views["sentence_embedding"])
                )
        if options.triplet_weight:
            if options.triplet_wrong_only:
                triplets = tuple(self._wrongly_ordered(one) for one in triplets)
            count = sum(len(one["input_ids"]) for one in triplets)
            if count and parts and not (options.triplet_dropout or options.triplet_temperature):
                triplets = tuple(self._with_slope(one) for one in triplets)
            if left := sum(len(one["input_ids"]) for one in triplets):
                found = self._triplets(triplets[0]) * (left / count)
            elif parts:  # no sentence of this batch is long enough, or all are in order
                found = parts["contrastive"] * 0.0
            else:  # zero, with a graph
                found = self.vectors(sentences).sum() * 0.0
            # Other processes may have more triplets, or none.
            parts["triplet"] = options.triplet_weight * found * self.share(count)
        return parts

    def views(self, *columns: dict[str, Any]) -> dict[str, Tensor]:
        """Encode both views, (2B, D) each, of one column (with dropout masks of their own) or of two."""
        if len(columns) == 1 and self.options.positive_dropout:
            twice = {k: torch.cat([v, v]) if isinstance(v, Tensor) else v for k, v in columns[0].items()}
            encoded = self.model(twice)
            return {key: encoded[key] for key in VECTORS if key in encoded}
        first = self.model(dict(columns[0]))
        with nullcontext() if self.options.positive_dropout else dropout_off(self.model):
            second = self.model(dict(columns[-1]))
        return {key: torch.cat([first[key], second[key]]) for key in VECTORS if key in first}

    def _kept(self, sentences: dict[str, Tensor], views: Tensor) -> Tensor:
        targets = self.teacher.encode(sentences)  # (B, D)
        all_targets, offset = self.gathered(targets)
        first, second = (
            functional.listwise_keep(
                one, targets, self.options.temperature, (self.gathered(one)[0], all_targets), offset
            )
            for one in views.chunk(2)
        )
        return (first + second) / 2

    def _wrongly_ordered(self, features: dict[str, Any]) -> dict[str, Any]:
        """Return those of the K triplets, (3K, T) tokens, that the frozen base orders wrongly."""
        anchors, closer, farther = self.teacher.encode(features).chunk(3)  # (K, D) each
        return _some(features, F.cosine_similarity(anchors, farther) > F.cosine_similarity(anchors, closer))

    def _with_slope(self, features: dict[str, Any]) -> dict[str, Any]:
        """Return those of the K triplets, (3K, T) tokens, that are not in order by the margin.

        The hinge of the others is flat: a backward pass through them, two thirds of their cost, would add zeros.
        """
        with torch.no_grad(), dropout_off(self.model):
            anchors, closer, farther = (one.float() for one in self.vectors(features).chunk(3))  # (K, D) each
        wrong = F.cosine_similarity(anchors, farther) - F.cosine_similarity(anchors, closer)
        return _some(features, wrong + self.options.triplet_margin >= 0)

    def _triplets(self, features: dict[str, Tensor]) -> Tensor:
        with nullcontext() if self.options.triplet_dropout else dropout_off(self.model):
            anchors, closer, farther = self.vectors(features).chunk(3)
        margin, temperature = self.options.triplet_margin, self.options.triplet_temperature
        return functional.entailment_triplet(anchors, closer, farther, margin, temperature)


def _some(features: dict[str, Any], chosen: Tensor) -> dict[str, Any]:
    """Return some of K triplets, (3K, T) tokens, by a mask (K,)."""
    return {k: v[chosen.repeat(3)] if isinstance(v, Tensor) else v for k, v in features.items()}
