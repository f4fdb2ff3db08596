"""Modules that an encoder has in training only: heads, a decoder, noise."""

from pathlib import Path
from typing import Any, Self

import torch
from sentence_transformers.sentence_transformer.modules import Dense
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from likewise.augment.word_noise import WordNoise, add_word_noise
from likewise.encoder.modules import SavedModule, TrainingOnly
from likewise.runs import processes


class TrainingHead(TrainingOnly, Dense):
    """A linear layer and Tanh on the sentence embedding in training; the identity in evaluation.

    ArcCSE, like SimCSE before it, trains on what an MLP makes of the [CLS] vector and evaluates the [CLS] vector
    itself (ArcCSE, section 4.1).
    """

    def __init__(self, dimension: int, activation_function: nn.Module | None = None, **settings: object) -> None:
        super().__init__(dimension, dimension, activation_function=activation_function or nn.Tanh())
        self.dimension = dimension

    config_keys: list[str] = ["dimension"]  # noqa: RUF012 - the base class declares it so

    def get_config_dict(self) -> dict[str, object]:
        """Return the configuration that a checkpoint keeps in addition to the weights."""
        return {"dimension": self.dimension}

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Map 'sentence_embedding' (B, D) to (B, D) in training; return the features unchanged in evaluation.

        What it maps stays in the features as 'saved_embedding': the vector that the saved model gives.
        """
        if not self.training:
            return features
        return super().forward(features | {"saved_embedding": features["sentence_embedding"]})


class TeacherSpace(TrainingOnly, SavedModule):
    """The way back from a smaller space to a teacher's, in training: (B, D) to 'prediction' (B, E)."""

    config_keys: list[str] = ["dimension", "size"]  # noqa: RUF012 - the base class declares it so

    def __init__(self, dimension: int, size: int) -> None:
        super().__init__()
        self.dimension, self.size = dimension, size
        self.register_buffer("axes", torch.eye(size, dimension))

    axes: Tensor

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add 'prediction' (B, E) in training."""
        if self.training:
            features["prediction"] = features["sentence_embedding"] @ self.axes.T
        return features


class PairClassifier(TrainingOnly, SavedModule):
    """A linear layer on (u, v, |u - v|) (Reimers and Gurevych 2019, section 3), for the loss and the evaluator."""

    config_keys: list[str] = ["dimension", "classes"]  # noqa: RUF012 - the base class declares it so

    def __init__(self, dimension: int, classes: int) -> None:
        super().__init__()
        self.dimension, self.classes = dimension, classes
        self.linear = nn.Linear(3 * dimension, classes)

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Return the features unchanged."""
        return features

    def logits(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the logits (P, C) of pairs of vectors (P, D), (P, D)."""
        return self.linear(torch.cat([first, second, (first - second).abs()], dim=1))


class TrainingDecoder(TrainingOnly, SavedModule):
    """The language model that the loss of a denoising auto-encoder decodes with.

    Args:
        decoder: a causal language model of transformers, its weights tied to the encoder's or not.
    """

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Return the features unchanged."""
        return features

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the decoder as transformers does."""
        decoder: Any = self.decoder
        decoder.save_pretrained(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: Any, **kwargs: Any) -> Self:
        """Load the module from a checkpoint's folder."""
        return cls(AutoModelForCausalLM.from_pretrained(str(Path(model_name_or_path) / subfolder)))


class NoisyWords(TrainingOnly, SavedModule):
    """Word-vector noise between word vectors and attention in training; the identity in evaluation.

    Chance comes from torch's global generator: a seed fixes it, and a resumed run restores it.
    """

    config_keys: list[str] = ["settings"]  # noqa: RUF012 - the base class declares it so

    def __init__(self, settings: WordNoise | dict[str, Any]) -> None:
        super().__init__()
        self.noise = settings if isinstance(settings, WordNoise) else WordNoise(**settings)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the configuration that a checkpoint keeps."""
        return {"settings": self.noise.to_dict()}

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add noise to 'token_embeddings' (B, T, D) in training."""
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
            *(nn.Linear(dimension, size, bias=False), BatchNorm(size), nn.ReLU()),
            *(nn.Linear(size, size, bias=False), BatchNorm(size), nn.ReLU()),
            *(nn.Linear(size, size, bias=False), BatchNorm(size)),
        )

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add 'projection' (B, size), made of 'sentence_embedding' (B, D), in training."""
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
            nn.Linear(size, hidden, bias=False), BatchNorm(hidden), nn.ReLU(), nn.Linear(hidden, size)
        )

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add 'prediction' (B, size), made of 'projection' (B, size), in training."""
        if self.training:
            features["prediction"] = self.layers(features["projection"])
        return features


class BatchNorm(nn.BatchNorm1d):
    """Batch norm whose mean and variance are those of the batch of all processes; alone, torch's own.

    torch's `SyncBatchNorm` does the same on GPUs only. The processes have equally many rows.
    """

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise rows (B, D)."""
        if not self.training or processes.count() == 1:
            return super().forward(rows)
        mean = processes.mean_of_processes(rows.mean(dim=0))  # (D,)
        variance = processes.mean_of_processes((rows - mean).square().mean(dim=0))  # (D,)
        with torch.no_grad():
            number, momentum = len(rows) * processes.count(), self.momentum or 0.0
            self.num_batches_tracked.add_(1)  # type: ignore[union-attr]
            self.running_mean.lerp_(mean, momentum)  # type: ignore[union-attr]
            self.running_var.lerp_(variance * number / (number - 1), momentum)  # type: ignore[union-attr]
        return (rows - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias
