"""Projector, predictor and word noise: the modules of GCLSR that are in the encoder while it is trained only."""

from __future__ import annotations

from typing import Any

from torch import nn

from likewise.augment.word_noise import WordNoise, add_word_noise
from likewise.encoder.head import TrainingOnly
from likewise.encoder.saved_module import SavedModule


class NoisyWords(TrainingOnly, SavedModule):
    """Word-vector noise between word vectors and attention, in training; nothing in evaluation.

    Chance comes from torch's global generator: a seed fixes it, and a resumed run goes on with it.
    """

    config_keys: list[str] = ["settings"]  # noqa: RUF012 - the base class declares it so

    def __init__(self, settings: WordNoise | dict[str, Any]) -> None:
        super().__init__()
        self.noise = settings if isinstance(settings, WordNoise) else WordNoise.from_dict(settings)

    def get_config_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"settings": self.noise.to_dict()}

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """'token_embeddings' (B, T, D) to (B, T, D)."""
        if self.training:
            features["token_embeddings"] = add_word_noise(
                features["token_embeddings"], features["attention_mask"], self.noise
            )
        return features


class Projector(TrainingOnly, SavedModule):
    """Three linear layers, batch norm after each, ReLU after the first two (GCLSR, section 4.1)."""

    config_keys: list[str] = ["dimension", "size"]  # noqa: RUF012 - the base class declares it so

    def __init__(self, dimension: int, size: int = 4096) -> None:
        super().__init__()
        self.dimension, self.size = dimension, size
        # A bias before batch norm would be taken out by it.
        self.layers = nn.Sequential(
            *(nn.Linear(dimension, size, bias=False), nn.BatchNorm1d(size), nn.ReLU()),
            *(nn.Linear(size, size, bias=False), nn.BatchNorm1d(size), nn.ReLU()),
            *(nn.Linear(size, size, bias=False), nn.BatchNorm1d(size)),
        )

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """'sentence_embedding' (B, D) to 'projection' (B, size) beside it, in training."""
        if self.training:
            features["projection"] = self.layers(features["sentence_embedding"])
        return features


class Predictor(TrainingOnly, SavedModule):
    """A bottleneck of two linear layers, batch norm and ReLU between them (GCLSR, section 4.1)."""

    config_keys: list[str] = ["size", "hidden"]  # noqa: RUF012 - the base class declares it so

    def __init__(self, size: int = 4096, hidden: int = 1024) -> None:
        super().__init__()
        self.size, self.hidden = size, hidden
        self.layers = nn.Sequential(
            nn.Linear(size, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, size)
        )

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """'projection' (B, size) to 'prediction' (B, size) beside it, in training."""
        if self.training:
            features["prediction"] = self.layers(features["projection"])
        return features
