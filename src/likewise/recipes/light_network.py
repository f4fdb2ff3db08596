"""The light encoder's network, its loss and its optimizer."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, LayerNorm
from torch import Tensor, nn
from torch.optim import Optimizer
from transformers import get_scheduler

from likewise.encoder.distilled_vectors import build_static_words
from likewise.encoder.training_modules import TeacherSpace
from likewise.losses import EncoderLoss, functional
from likewise.recipes import OptionError
from likewise.recipes.light import LightOptions
from likewise.runs import processes


def build_network(base: str, options: LightOptions, sentences: Any) -> SentenceTransformer:
    """Return a mean of word vectors and, if the options ask for them, a network and the axes of fewer dimensions."""
    words, axes = build_static_words(base, sentences, options.words, options.dimension, options.vectors)
    size, dimension = axes.shape
    modules: list[nn.Module] = [words]
    if options.hidden:
        modules += _network(words.embedding_dim, options.hidden, dimension)
    if dimension < size:
        space = TeacherSpace(dimension, size)
        space.axes.copy_(axes)
        modules.append(space)
    return SentenceTransformer(modules=modules)


def _network(words: int, hidden: int, dimension: int) -> list[nn.Module]:
    """Return layer norm, a hidden layer and an output layer (W to D), stock modules.

    As gelu(x) - gelu(-x) = x, 2 D hidden units can hand the vector through, so that training starts at the mean of
    words and not at random where W is D.
    """
    inner = Dense(words, hidden, activation_function=nn.GELU())
    outer = Dense(hidden, dimension, activation_function=nn.Identity())
    if words == dimension:
        if hidden < 2 * dimension:
            raise OptionError(f"training starts with 2 x {dimension} hidden units, and hidden is {hidden}: raise it")
        one = torch.eye(dimension)
        with torch.no_grad():
            inner.linear.weight[: 2 * dimension] = torch.cat([one, -one])
            outer.linear.weight.zero_()[:, : 2 * dimension] = torch.cat([one, -one], dim=1)
            inner.linear.bias.zero_()
            outer.linear.bias.zero_()
    return [LayerNorm(words), inner, outer]


def words_and_vectors(
    rows: list[dict[str, Any]], preprocess: Callable[[list[str]], dict[str, torch.Tensor]]
) -> dict[str, torch.Tensor]:
    """Return the words of a batch and the vectors that they learn."""
    found = preprocess([row["sentence"] for row in rows])
    wanted = np.frombuffer(b"".join(row["teacher"] for row in rows), dtype=np.float16).astype(np.float32)
    batch = {f"sentence_{name}": value for name, value in found.items()}
    return batch | {"teacher_sentence_embedding": torch.from_numpy(wanted.reshape(len(rows), -1))}


class VectorsLoss(EncoderLoss[LightOptions]):
    """The mean of 1 - cos(prediction, vector) with vectors that were made before.

    Where the encoder makes a 'prediction' in training, it is compared; otherwise its vector.

    Inputs: two columns, the sentences' features and {'sentence_embedding': (B, E)}. No labels.
    """

    def _loss(self, own: dict[str, Any], wanted: dict[str, Any]) -> Tensor:
        found = self.model(dict(own))
        return functional.cosine_distance(
            found.get("prediction", found["sentence_embedding"]), wanted["sentence_embedding"]
        )


class RowAdam(Optimizer):
    """Adam (Kingma and Ba 2015); a row of a 'rows' group whose gradient is zero keeps its moments and its value.

    With ordinary moments a rare word would move long after the sentence that held it. torch's SparseAdam does the
    same for sparse gradients alone; here a table's gradient may be either, since processes average dense ones.

    Args:
        params: parameters or groups, each with its own 'lr' or the given one; {'rows': True} marks a group of tables.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "rows": False})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update the parameters."""
        for group in self.param_groups:
            first, second = group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state |= {"step": 0, "mean": torch.zeros_like(parameter), "square": torch.zeros_like(parameter)}
                state["step"] += 1
                gradient, rows = parameter.grad, slice(None)
                if gradient.is_sparse:
                    gradient = gradient.coalesce()
                    rows, gradient = gradient.indices()[0], gradient.values()
                elif group["rows"]:
                    rows = gradient.ne(0).any(dim=1).nonzero()[:, 0]
                    gradient = gradient[rows]
                mean = state["mean"][rows].lerp_(gradient, 1 - first)
                square = state["square"][rows].mul_(second).addcmul_(gradient, gradient, value=1 - second)
                state["mean"][rows], state["square"][rows] = mean, square
                rate = group["lr"] / (1 - first ** state["step"])
                parameter[rows] -= rate * mean / ((square / (1 - second ** state["step"])).sqrt() + group["eps"])


def build_optimizer(encoder: SentenceTransformer, options: LightOptions, steps: int) -> tuple[Any, Any]:
    """Return Adam with a rate of its own for the word vectors, and its schedule."""
    words: Any = encoder[0]
    # A batch holds a few thousand of the words; neither clipping nor averaging over processes takes sparse gradients.
    words.embedding.sparse = not options.max_grad_norm and processes.count() == 1
    network = [parameter for module in list(encoder)[1:] for parameter in module.parameters()]
    groups: list[dict[str, Any]] = [
        {"params": list(words.parameters()), "lr": options.word_rate, "rows": True},
        {"params": network},
    ]
    optimizer = RowAdam([group for group in groups if group["params"]], lr=options.learning_rate)
    return optimizer, get_scheduler(options.schedule, optimizer, int(options.warmup_ratio * steps), steps)
