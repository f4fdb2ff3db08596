"""Distillation: a sentence vector learns to match another encoder's vector of the same sentence."""

from collections.abc import Iterable
from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.encoder.encoder_copy import FrozenCopy
from likewise.encoder.modules import find_part
from likewise.errors import LikewiseError
from likewise.losses import functional


class DistillationLoss(nn.Module):
    """The mean of 1 - cos(vector, vector of a teacher); the teacher is a fixed copy of an encoder.

    The encoder learns without dropout: what it should give is one vector, and not two views. Its own probability stays
    in its configuration, for whoever trains it next.

    Args:
        model: the encoder; a `FrozenCopy` among its modules is the teacher.

    Inputs: two columns, the sentences as tokens of the encoder and as tokens of the teacher. No labels.
    """

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.model = model
        found = find_part(model, FrozenCopy)
        if found is None:
            raise LikewiseError("a distilled encoder needs a FrozenCopy among its modules: the teacher")
        # In a dict: they are parts of the encoder already.
        self._parts: dict[str, Any] = {"encoder": model, "teacher": found}

    def forward(
        self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None
    ) -> Tensor | dict[str, Tensor]:
        """Return the loss of a batch, a scalar."""
        own, plain = list(sentence_features)[:2]
        return self.vectors_and_distance(own, plain)[1]

    def vectors_and_distance(self, own: dict[str, Any], plain: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return the vectors (B, D) of sentences, and their mean distance from the teacher's, a scalar."""
        vectors = self.vectors(own)
        return vectors, functional.cosine_distance(vectors, self._parts["teacher"].encode(plain))

    def vectors(self, own: dict[str, Any]) -> Tensor:
        """Return the encoder's vectors (B, D) of sentences, without dropout."""
        self._parts["encoder"][0].eval()  # the trainer turns it on again before each step
        found: Tensor = self.model(dict(own))["sentence_embedding"]
        return found


class ComposedLoss(DistillationLoss):
    """The mean of 1 - cos(vector, target), with targets composed of the teacher's vectors.

    The target of a sentence is the teacher's vector of a text, less a share of its vector of what is excluded, if
    anything; both have length 1.

    Args:
        model: as in `DistillationLoss`.
        share: how much is taken away.

    Inputs: N sentences as tokens of the encoder; N texts as tokens of the teacher; and, where something is excluded, E
    texts as tokens of the teacher with their places among the N as 'rows' (E,). No labels.
    """

    def __init__(self, model: SentenceTransformer, share: float) -> None:
        super().__init__(model)
        self.share = share

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch, a scalar."""
        own, meant, *excluded = sentence_features
        teacher = self._parts["teacher"]
        targets = F.normalize(teacher.encode(meant), dim=1)
        for features in excluded:
            less = F.normalize(teacher.encode(features), dim=1).to(targets.dtype)
            targets = targets.index_add(0, features["rows"], less, alpha=-self.share)
        return functional.cosine_distance(self.vectors(own), targets)


class AnchoredLoss(DistillationLoss):
    """The squared error of the cosines of scored pairs, and the weighted distance of all vectors from the teacher's.

    Args:
        model: as in `DistillationLoss`.
        anchor: the weight of the distance.

    Inputs: four columns, the first and the second sentences as tokens of the encoder, then both as tokens of the
    teacher; and the targets (B,) of the cosines. Returns the weighted parts by name; the trainer sums and logs them.
    """

    def __init__(self, model: SentenceTransformer, anchor: float) -> None:
        super().__init__(model)
        self.anchor = anchor

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> dict[str, Tensor]:
        """Return the weighted parts of a batch's loss, by name: {'scores': scalar, 'anchor': scalar}."""
        assert labels is not None
        first, second, *plain = sentence_features
        (one, distance), (other, distance_of_other) = map(self.vectors_and_distance, (first, second), plain)
        error = F.mse_loss(F.cosine_similarity(one, other), labels.float())
        return {"scores": error, "anchor": self.anchor * (distance + distance_of_other) / 2}


class VectorsLoss(nn.Module):
    """The mean of 1 - cos(prediction, vector) with vectors that were made before.

    Args:
        model: the encoder; its 'prediction' is compared where it makes one in training, otherwise its vector.

    Inputs: two columns, the sentences' features and {'sentence_embedding': (B, E)}. No labels.
    """

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch, a scalar."""
        own, wanted = list(sentence_features)[:2]
        found = self.model(dict(own))
        return functional.cosine_distance(
            found.get("prediction", found["sentence_embedding"]), wanted["sentence_embedding"]
        )
