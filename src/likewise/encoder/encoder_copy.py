"""A second encoder in training: a trained twin, a frozen teacher, or a momentum encoder."""

import copy
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.encoder.modules import SavedModule, TrainingOnly
from likewise.encoder.training_modules import TrainingHead


class EncoderCopy(TrainingOnly, SavedModule):
    """A copy of an encoder as a module of that encoder: saved in checkpoints, never exported.

    It leaves the features as they are; a loss calls `encode`.
    """

    folder_name = "copy"

    def __init__(self, encoder: SentenceTransformer) -> None:
        super().__init__()
        self.encoder = encoder

    @classmethod
    def of(cls, encoder: SentenceTransformer, **settings: Any) -> Self:
        """Return a copy of an encoder without its training-only modules."""
        kept = [copy.deepcopy(module) for module in encoder.children() if not isinstance(module, TrainingOnly)]
        return cls(SentenceTransformer(modules=kept, device=str(encoder.device)), **settings)

    def encode(self, features: dict[str, Any]) -> Tensor:
        """Encode tokens (B, T) as sentence vectors (B, D) of the copy."""
        return self.encoder(dict(features))["sentence_embedding"]

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Return the features unchanged."""
        return features

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the copy into a subfolder of the module's folder."""
        self.encoder.save_pretrained(str(Path(output_path) / self.folder_name), create_model_card=False)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: Any, **kwargs: Any) -> Self:
        """Load the module from a checkpoint's folder."""
        return cls(SentenceTransformer(str(Path(model_name_or_path) / subfolder / cls.folder_name), device="cpu"))


class FrozenCopy(EncoderCopy):
    """A copy that is not trained and has no dropout: a teacher."""

    def __init__(self, encoder: SentenceTransformer) -> None:
        super().__init__(encoder)
        self.encoder.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """Set the mode of the module, but keep the copy in evaluation mode."""
        super().train(mode)
        self.encoder.eval()
        return self


class MomentumQueue(FrozenCopy):
    """The momentum encoder of ESimCSE and the queue of the vectors it made (section 3.2), first in, first out.

    The copy has no dropout, as in the authors' code.

    Args:
        momentum: lambda of theta_m <- lambda theta_m + (1 - lambda) theta_e.
    """

    config_keys: list[str] = ["size", "dimension", "momentum"]  # noqa: RUF012 - the base class declares it so

    def __init__(self, encoder: SentenceTransformer, size: int, dimension: int, momentum: float = 0.995) -> None:
        super().__init__(encoder)
        self.size, self.dimension, self.momentum = size, dimension, momentum
        self.register_buffer("queue", torch.zeros(size, dimension))  # (M, D), the oldest first
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))

    queue: Tensor
    filled: Tensor

    def vectors(self) -> Tensor:
        """Return the vectors in the queue, (up to M, D), the oldest first, as a copy."""
        return self.queue[self.size - int(self.filled) :].clone()

    @torch.no_grad()
    def push(self, vectors: Tensor) -> None:
        """Append vectors (B, D) to the queue, and drop the oldest."""
        kept = torch.cat([self.queue, vectors.detach().to(self.queue.dtype)])[-self.size :] if self.size else self.queue
        self.queue.copy_(kept)
        self.filled.fill_(min(self.size, int(self.filled) + len(vectors)))

    @torch.no_grad()
    def follow(self, encoder: nn.Module) -> None:
        """Update the copy's weights towards those of the trained encoder, by momentum."""
        kept = [module for module in encoder.children() if not isinstance(module, TrainingOnly)]
        for own, other in zip(self.encoder.children(), kept, strict=True):
            for mine, theirs in zip(own.parameters(), other.parameters(), strict=True):
                mine.lerp_(theirs.detach(), 1 - self.momentum)

    @torch.no_grad()
    def keys(self, features: dict[str, Any], head: TrainingHead | None = None) -> Tensor:
        """Encode tokens (B, T) as vectors (B, D) for the queue, through the trained encoder's head if any."""
        vectors = self.encode(features)
        return head({"sentence_embedding": vectors})["sentence_embedding"] if head else vectors

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the copy, the queue and the settings."""
        super().save(output_path)
        self.save_config(output_path)
        save_file({"queue": self.queue, "filled": self.filled}, str(Path(output_path) / "queue.safetensors"))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: Any, **kwargs: Any) -> Self:
        """Load the module from a checkpoint's folder."""
        folder = Path(model_name_or_path) / subfolder
        module = cls(
            SentenceTransformer(str(folder / cls.folder_name), device="cpu"),
            **cls.load_config(model_name_or_path, subfolder=subfolder),
        )
        for name, value in load_file(str(folder / "queue.safetensors")).items():
            getattr(module, name).copy_(value)
        return module
