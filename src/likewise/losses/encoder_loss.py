"""The base class of the losses: a subclass encodes the columns of a batch, and calls `functional`."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

from likewise.encoder.encoder_copy import FrozenCopy
from likewise.encoder.modules import find_part


class EncoderLoss(nn.Module):
    """A loss of sentence-transformers, made from an encoder and the options of a recipe.

    `model` is the encoder, or what the trainer wraps it in; `encoder` is always the encoder itself.
    """

    loss: Callable[..., Any]
    """From the features of each column of a batch to a scalar, or to weighted parts by name, which are summed."""

    def __init__(self, encoder: Any, options: Any = None) -> None:
        super().__init__()
        self.model, self.options = encoder, options
        self._trained = {"encoder": encoder}  # in a dict: it is no part of the loss a second time

    @property
    def encoder(self) -> Any:
        """The encoder that is trained."""
        return self._trained["encoder"]

    @property
    def teacher(self) -> Any:
        """The frozen copy among the encoder's modules, if there is one."""
        return find_part(self.encoder, FrozenCopy)

    def vectors(self, features: dict[str, Any]) -> Tensor:
        """Encode tokens (B, T) as sentence vectors (B, D)."""
        found: Tensor = self.model(dict(features))["sentence_embedding"]
        return found

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Any:
        """Return the loss of a batch."""
        return self.loss(*sentence_features)
