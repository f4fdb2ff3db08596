"""Modules of training only: heads, a decoder, noise, a second encoder, and faster dropout.

A training step of a small transformer draws some forty million chances for its dropout, and torch draws them one at a
time. Here each draw of 64 bits makes four, and a probability is kept to 1/65,536. The draws come from torch's global
generator, so that a seed fixes them and a checkpoint restores them.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from likewise.augment.word_noise import add_word_noise
from likewise.encoder.modules import Features, TrainingOnly, forward_replaced, saved_modules, with_modules
from likewise.encoder.word_vectors import UNKNOWN_ID
from likewise.runs import processes
from likewise.runs.whole_files import Record

Masks = Callable[[torch.Size, float], Tensor]
"""(shape, probability) to where a tensor is kept, a bool tensor."""
_ENCODER, _BUFFERS = "copy", "buffers.safetensors"
_LEVELS = 1 << 16
_WATCHED = 2
"""For how many times the interval each batch is examined, at the beginning and after a triplet in the wrong order."""


class TrainingHead(TrainingOnly):
    """A linear layer with Tanh on the sentence embedding in training, and the identity in evaluation.

    ArcCSE, like SimCSE, trains on the output of an MLP on the [CLS] vector and evaluates the [CLS] vector itself
    (ArcCSE, section 4.1).
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension
        self.linear = nn.Linear(dimension, dimension)

    def _in_training(self, features: Features) -> Features:
        return {"sentence_embedding": torch.tanh(self.linear(features["sentence_embedding"]))}


class Truncation(TrainingOnly):
    """The first numbers of the sentence vector in training, as a model with `truncate_dim` returns them."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension

    def _in_training(self, features: Features) -> Features:
        return {"sentence_embedding": features["sentence_embedding"][:, : self.dimension]}


class PairClassifier(TrainingOnly):
    """A linear layer on (u, v, |u - v|) (Reimers and Gurevych 2019, section 3), for the loss and the evaluator."""

    def __init__(self, dimension: int, classes: int) -> None:
        super().__init__()
        self.dimension, self.classes = dimension, classes
        self.linear = nn.Linear(3 * dimension, classes)

    def logits(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the logits (P, C) of pairs of vectors (P, D), (P, D)."""
        return self.linear(torch.cat([first, second, (first - second).abs()], dim=1))


class TripletWatch(TrainingOnly):
    """The schedule of ArcCSE's search for triplets in the wrong order: first in all batches, then in one of several.

    It is a module of the encoder so that checkpoints contain `until`: a resumed training searches the same batches as
    an uninterrupted training.

    Args:
        every: Interval, in updates, of the search if recent updates contained no such triplet.
    """

    until: Tensor

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every = every
        self.register_buffer("until", torch.tensor(_WATCHED * every))

    def is_due(self, step: int) -> bool:
        """Return whether the batches of an update, counted from 0, are searched."""
        return step < int(self.until) or step % self.every == 0

    def restart(self, step: int) -> None:
        """Search all batches for a while, because a batch of this update contained a triplet in the wrong order."""
        self.until.fill_(step + 1 + _WATCHED * self.every)


class NoisyWords(TrainingOnly):
    """Word-vector noise between word vectors and attention in training; the identity in evaluation.

    Chance comes from torch's global generator: a seed fixes it, and a resumed run restores it.
    """

    def __init__(self, settings: Record) -> None:
        super().__init__()
        self.settings = settings  # of `add_word_noise`

    def _in_training(self, features: Features) -> Features:
        vectors, mask = features["token_embeddings"], features["attention_mask"]  # (B, T, D), (B, T)
        return {"token_embeddings": add_word_noise(vectors, mask, **self.settings)}


class DrawnUnknownWords(TrainingOnly):
    """Vectors of unknown words that are drawn again in training, from -spread to spread; evaluation has the saved one.

    Random numbers come from torch's global generator, as in `NoisyWords`.
    """

    def __init__(self, spread: float) -> None:
        super().__init__()
        self.spread = spread

    def _in_training(self, features: Features) -> Features:
        vectors = features["token_embeddings"]  # (B, T, D)
        drawn = torch.empty_like(vectors).uniform_(-self.spread, self.spread)
        unknown = features["input_ids"] == UNKNOWN_ID  # (B, T)
        return {"token_embeddings": torch.where(unknown[:, :, None], drawn, vectors)}


class Projector(TrainingOnly):
    """Three linear layers, batch norm after each, ReLU after all but the last (GCLSR, section 4.1).

    From 'sentence_embedding' (B, D) to 'projection' (B, size).
    """

    def __init__(self, dimension: int, size: int = 4096) -> None:
        super().__init__()
        self.dimension, self.size = dimension, size
        parts: list[nn.Module] = []
        for width in (dimension, size, size):
            # A bias before batch norm would be taken out by it.
            parts += [nn.Linear(width, size, bias=False), BatchNorm(size), nn.ReLU()]
        self.layers = nn.Sequential(*parts[:-1])

    def _in_training(self, features: Features) -> Features:
        return {"projection": self.layers(features["sentence_embedding"])}


class Predictor(TrainingOnly):
    """A bottleneck of two linear layers, batch norm and ReLU between them (GCLSR, section 4.1).

    From 'projection' (B, size) to 'prediction' (B, size).
    """

    def __init__(self, size: int = 4096, hidden: int = 1024) -> None:
        super().__init__()
        self.size, self.hidden = size, hidden
        self.layers = nn.Sequential(
            nn.Linear(size, hidden, bias=False), BatchNorm(hidden), nn.ReLU(), nn.Linear(hidden, size)
        )

    def _in_training(self, features: Features) -> Features:
        return {"prediction": self.layers(features["projection"])}


class BatchNorm(nn.BatchNorm1d):
    """Batch norm with the mean and variance of the batch of all processes; in one process, torch's own.

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


class EncoderCopy(TrainingOnly):
    """A copy of an encoder as a module of that encoder, which is saved in checkpoints but never exported."""

    def __init__(self, encoder: SentenceTransformer) -> None:
        super().__init__()
        self.encoder = encoder

    @classmethod
    def of(cls, encoder: SentenceTransformer, **settings: Any) -> Self:
        """Return a copy of an encoder without its training-only modules."""
        return cls(with_modules(encoder, [copy.deepcopy(module) for module in saved_modules(encoder)]), **settings)

    def encode(self, features: Features) -> Tensor:
        """Encode tokens (B, T) as sentence vectors (B, D) of the copy."""
        vectors: Tensor = self.encoder(dict(features))["sentence_embedding"]
        return vectors[:, : self.encoder.truncate_dim]

    def get_config_dict(self) -> Record:
        """Return the settings; the encoder is saved in a separate folder."""
        return {name: value for name, value in super().get_config_dict().items() if name != "encoder"}

    def save(self, output_path: str, *args: object, safe_serialization: bool = True, **kwargs: object) -> None:
        """Write the copy into a subfolder of the module's folder, and the settings and buffers next to it."""
        self.encoder.save_pretrained(str(Path(output_path) / _ENCODER), create_model_card=False)
        self.save_config(output_path)
        save_file(dict(self.named_buffers(recurse=False)), str(Path(output_path) / _BUFFERS))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: object, **kwargs: object) -> Self:
        """Load the module from a checkpoint's folder."""
        folder = Path(model_name_or_path) / subfolder
        settings = cls.load_config(model_name_or_path, subfolder=subfolder)
        module = cls(SentenceTransformer(str(folder / _ENCODER), device="cpu"), **settings)
        for name, value in load_file(str(folder / _BUFFERS)).items():
            getattr(module, name).copy_(value)
        return module


class FrozenCopy(EncoderCopy):
    """A frozen copy without dropout, which serves as a teacher."""

    def __init__(self, encoder: SentenceTransformer) -> None:
        super().__init__(encoder)
        self.encoder.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """Set the mode of the module, but keep the copy in evaluation mode."""
        super().train(mode)
        self.encoder.eval()
        return self


class MaskTape:
    """The masks of a forward pass, so that a second pass has them without drawing them again.

    The state of torch's generator after each mask is restored with it, so that whatever else is drawn is the same, too.
    A mask of another shape than in the first pass is drawn.
    """

    def __init__(self) -> None:
        self._masks: list[tuple[Tensor, Tensor]] = []
        self._place: int | None = None

    def rewind(self) -> None:
        """Begin the second pass."""
        self._place = 0

    def __call__(self, shape: torch.Size, probability: float) -> Tensor:
        """Return where a tensor is kept, a bool tensor of its shape."""
        if self._place is None:
            mask = _drawn(shape, probability)
            self._masks.append((mask, torch.get_rng_state()))
            return mask
        before = self._masks[self._place] if self._place < len(self._masks) else None
        self._place += 1
        if before is None or before[0].shape != shape:
            return _drawn(shape, probability)
        torch.set_rng_state(before[1])
        return before[0]


class FastDropout(TorchFunctionMode):
    """A `with` block in which torch's dropout and attention call `dropped` for tensors on a CPU.

    It holds for the thread that entered it, and for every model, since they all call these two functions of torch.

    Args:
        masks: Where masks come from; by default they are drawn.
    """

    def __init__(self, masks: Masks | None = None) -> None:
        super().__init__()
        self.masks = masks or _drawn

    def __torch_function__(
        self, function: Callable[..., object], types: object, args: tuple[Any, ...] = (), kwargs: Record | None = None
    ) -> object:
        """Call a function of torch, or compute the same with masks of our own."""
        kwargs = kwargs or {}
        ours = _OURS.get(function)
        first = args[0] if args else kwargs.get("input", kwargs.get("query"))
        if ours is None or first is None or first.device.type != "cpu":
            return function(*args, **kwargs)
        return ours(self.masks, *args, **kwargs)


def dropped(values: Tensor, probability: float, masks: Masks | None = None) -> Tensor:
    """Return a tensor of any shape with zeros by chance, and the rest scaled by 1 / (1 - probability)."""
    mask = (masks or _drawn)(values.shape, probability)
    return values * mask.to(values.dtype).mul_(1 / (1 - probability))


@contextmanager
def fast_dropout(model: nn.Module, masks: Callable[[], Masks | None] = lambda: None) -> Iterator[None]:
    """Draw the dropout masks of a model's forward passes by `dropped` in a `with` block.

    Models with gradient checkpointing are not changed, because their second pass is not in `forward`.

    Args:
        model: Encoder.
        masks: Function that is called before each forward pass and returns a tape for it, or None.
    """
    if any(getattr(part, "gradient_checkpointing", False) for part in model.modules()):
        yield
        return
    whole = model.forward

    def forward(*args: object, **settings: object) -> object:
        with FastDropout(masks() or _drawn):
            return whole(*args, **settings)

    with forward_replaced(model, forward):
        yield


def _drawn(shape: torch.Size, probability: float) -> Tensor:
    """Return a mask by four chances of each draw of 64 bits."""
    words = torch.empty(-(-shape.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None)
    chances = words.view(torch.int16)[: shape.numel()].view(shape)
    return chances >= round(probability * _LEVELS) - _LEVELS // 2


def _dropout(masks: Masks, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if inplace or not training or not 0 < p < 1:
        return F.dropout(input, p, training, inplace)
    return dropped(input, p, masks)


def _attention(
    masks: Masks,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    **form: Any,
) -> Tensor:
    """Return the mixed values (..., T, W) of queries (..., T, W), keys and values (..., S, W)."""
    scale = form.pop("scale", None)
    if not dropout_p or any(form.values()):  # causal, or with fewer keys than queries: torch's own
        return F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, scale=scale, **form)
    scores = (query * (scale or query.shape[-1] ** -0.5)) @ key.transpose(-2, -1)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return dropped(torch.softmax(scores, -1), dropout_p, masks).to(value.dtype) @ value


_OURS: dict[Callable[..., object], Callable[..., Tensor]] = {
    F.dropout: _dropout,
    F.scaled_dot_product_attention: _attention,
}
