"""The base class of the losses, which encode the columns of a batch and call `functional`; and distillation."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.encoder.modules import Features, find_part
from likewise.encoder.training_modules import FrozenCopy
from likewise.errors import LikewiseError
from likewise.losses import functional
from likewise.runs import processes

_Options = TypeVar("_Options")


class CollapseError(LikewiseError):
    """Raised if all sentences collapse to one vector; the message gives the figures and what to change."""


class EncoderLoss(nn.Module, Generic[_Options]):
    """A loss of sentence-transformers for an encoder and the options of a recipe.

    `model` is the encoder, or its wrapper by the trainer; `encoder` is always the encoder itself. With several
    processes, `gathered` returns the vectors of all processes, and `share` the factor of a mean over the rows of this
    process. The counters of a loss are lost if a training is interrupted, unlike `step` and `steps`, which the trainer
    sets.

    Attributes:
        step: Number of earlier updates, also after a stop.
        steps: Number of all updates of the training.

    Args:
        equation: Function of the loss and the features of each column of a batch that returns a scalar, or weighted
            parts by name, which are summed. A subclass may define `_loss` instead.
    """

    gathered, share = staticmethod(processes.gather_rows), staticmethod(processes.share)

    def __init__(
        self, encoder: SentenceTransformer, options: _Options, equation: Callable[..., object] | None = None
    ) -> None:
        super().__init__()
        self.model, self.options, self._equation = encoder, options, equation
        self.step, self.steps = 0, 1
        self._trained = {"encoder": encoder}  # in a dict: it is no part of the loss a second time
        self._seen: dict[str, list[float]] = {}

    @property
    def encoder(self) -> SentenceTransformer:
        """The encoder that is trained."""
        return self._trained["encoder"]

    @property
    def teacher(self) -> Any:
        """The frozen copy among the encoder's modules, if there is one."""
        return find_part(self.encoder, FrozenCopy)

    def vectors(self, features: Features) -> Tensor:
        """Encode tokens (B, T) as sentence vectors (B, D)."""
        embeddings: Tensor = self.model(dict(features))["sentence_embedding"]
        return embeddings

    def note(self, **figures: float | Tensor) -> None:
        """Note figures of a batch for the log of the training, which shows the mean since its last line.

        Args:
            figures: Numbers by name, or tensors, whose mean is noted and which get no gradient from it.
        """
        for name, figure in figures.items():
            number = figure.detach().float().mean() if isinstance(figure, Tensor) else figure
            self._seen.setdefault(name, []).append(float(number))

    def measures(self) -> dict[str, float]:
        """Return the mean of each noted figure since the last call."""
        means = {name: sum(figures) / len(figures) for name, figures in self._seen.items()}
        self._seen = {}
        return means

    def _loss(self, *columns: Features) -> Any:
        assert self._equation is not None, "give an equation, or define _loss"
        try:
            inspect.signature(self._equation).bind(self, *columns)
        except TypeError as error:
            raise LikewiseError(
                f"the loss {self._named} is called with itself and the {len(columns)} columns of `views`: {error}"
            ) from None
        return self._equation(self, *columns)

    @property
    def _named(self) -> str:
        return getattr(self._equation, "__name__", type(self).__name__)

    def forward(self, sentence_features: Iterable[Features], labels: Tensor | None = None) -> Any:
        """Return the loss of a batch.

        Raises:
            LikewiseError: If the equation does not take the columns, or returned neither a number nor several by name.
        """
        loss = self._loss(*sentence_features)
        for part in loss.values() if isinstance(loss, Mapping) else [loss]:
            if not isinstance(part, Tensor) or part.numel() != 1:
                returned = f"a tensor {tuple(part.shape)}" if isinstance(part, Tensor) else type(part).__name__
                raise LikewiseError(
                    f"the loss {self._named} returned {returned}: "
                    "return a tensor with one number, or a dictionary of such tensors"
                )
        return loss


class DistillationLoss(EncoderLoss[Any]):
    """The mean of 1 - cos(vector, vector of a teacher), which is a `FrozenCopy` among the encoder's modules.

    The encoder is trained without dropout, because the target is a single vector. The dropout rate of its configuration
    is preserved for the next training.

    The inputs are two columns, the sentences as tokens of the encoder and as tokens of the teacher, and a further
    column of the encoder for each other prompt. There are no labels.
    """

    def vectors(self, features: Features) -> Tensor:
        """Encode tokens (B, T) as sentence vectors (B, D), without dropout."""
        self.encoder[0].eval()  # the trainer turns it on again before each step
        return super().vectors(features)

    def _loss(self, *columns: Features) -> Tensor:
        if self._equation is not None:
            loss: Tensor = super()._loss(*columns)
            return loss
        own, plain, *others = columns
        vectors = torch.cat([self.vectors(features) for features in (own, *others)])  # (B, D) for each prompt
        return functional.cosine_distance(vectors, self.teacher.encode(plain).repeat(1 + len(others), 1))


class AnchoredLoss(DistillationLoss):
    """The squared error of the cosines of scored pairs, and the weighted distance of all vectors from the teacher's.

    Inputs: four columns, the first and the second sentences as tokens of the encoder, then both as tokens of the
    teacher; and the targets (B,) of the cosines. The option `anchor` is the weight of the distance.
    """

    def forward(self, sentence_features: Iterable[Features], labels: Tensor | None = None) -> dict[str, Tensor]:
        """Return the weighted parts of a batch's loss, by name: {'scores': scalar, 'anchor': scalar}."""
        assert labels is not None
        first, second, *plain = sentence_features
        sides = self.vectors(first), self.vectors(second)
        error = F.mse_loss(F.cosine_similarity(*sides), labels.float())
        distances = [
            functional.cosine_distance(vectors, self.teacher.encode(tokens))
            for vectors, tokens in zip(sides, plain, strict=True)
        ]
        return {"scores": error, "anchor": self.options.anchor * (distances[0] + distances[1]) / 2}


class ProfileLoss(EncoderLoss[Any]):
    """The divergence of the sentences' distributions over contexts from a teacher's.

    Inputs: two columns, B sentences and C texts around a gap; and the logits (B, C) of the teacher.
    """

    def forward(self, sentence_features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch, a scalar."""
        assert labels is not None
        sentences, contexts = map(self.vectors, sentence_features)
        return functional.profile_divergence(sentences, contexts, labels, self.options.temperature)
