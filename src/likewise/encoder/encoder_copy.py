"""A second encoder in training: a trained twin, a frozen teacher, or a momentum encoder."""

import copy
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.encoder.modules import TrainingOnly, saved_modules
from likewise.encoder.training_modules import TrainingHead

_ENCODER, _BUFFERS = "copy", "buffers.safetensors"


class EncoderCopy(TrainingOnly):
    """A copy of an encoder as a module of that encoder: saved in checkpoints, never exported. A loss calls `encode`."""

    def __init__(self, encoder: SentenceTransformer) -> None:
        super().__init__()
        self.encoder = encoder

    @classmethod
    def of(cls, encoder: SentenceTransformer, **settings: Any) -> Self:
        """Return a copy of an encoder without its training-only modules."""
        kept = [copy.deepcopy(module) for module in saved_modules(encoder)]
        return cls(SentenceTransformer(modules=kept, device=str(encoder.device)), **settings)

    def encode(self, features: dict[str, Any]) -> Tensor:
        """Encode tokens (B, T) as sentence vectors (B, D) of the copy."""
        return self.encoder(dict(features))["sentence_embedding"]

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings; the encoder is a folder of its own."""
        return {name: value for name, value in super().get_config_dict().items() if name != "encoder"}

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the copy into a subfolder of the module's folder, and the settings and buffers beside it."""
        self.encoder.save_pretrained(str(Path(output_path) / _ENCODER), create_model_card=False)
        self.save_config(output_path)
        save_file(dict(self.named_buffers(recurse=False)), str(Path(output_path) / _BUFFERS))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: Any, **kwargs: Any) -> Self:
        """Load the module from a checkpoint's folder."""
        folder = Path(model_name_or_path) / subfolder
        settings = cls.load_config(model_name_or_path, subfolder=subfolder)
        module = cls(SentenceTransformer(str(folder / _ENCODER), device="cpu"), **settings)
        for name, value in load_file(str(folder / _BUFFERS)).items():
            getattr(module, name).copy_(value)
        return module


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

    queue: Tensor
    filled: Tensor

    def __init__(self, encoder: SentenceTransformer, size: int, dimension: int, momentum: float = 0.995) -> None:
        super().__init__(encoder)
        self.size, self.dimension, self.momentum = size, dimension, momentum
        self.register_buffer("queue", torch.zeros(size, dimension))  # (M, D), the oldest first
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))

    def vectors(self) -> Tensor:
        """Return the vectors in the queue, (up to M, D), the oldest first, as a copy."""
        return self.queue[self.size - int(self.filled) :].clone()

    @torch.no_grad()
    def push(self, vectors: Tensor) -> None:
        """Append vectors (B, D) to the queue, and drop the oldest."""
        self.queue.copy_(torch.cat([self.queue, vectors.to(self.queue.dtype)])[-self.size :])
        self.filled.fill_(min(self.size, int(self.filled) + len(vectors)))

    @torch.no_grad()
    def follow(self, encoder: nn.Module) -> None:
        """Update the copy's weights towards those of the trained encoder, by momentum."""
        trained = (parameter for module in saved_modules(encoder) for parameter in module.parameters())
        for own, other in zip(self.encoder.parameters(), trained, strict=True):
            own.lerp_(other, 1 - self.momentum)

    @torch.no_grad()
    def keys(self, features: dict[str, Any], head: TrainingHead | None = None) -> Tensor:
        """Encode tokens (B, T) as vectors (B, D) for the queue, through the trained encoder's head if any."""
        vectors = self.encode(features)
        return head({"sentence_embedding": vectors})["sentence_embedding"] if head else vectors
