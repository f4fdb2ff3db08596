"""The network of GCLSR, its grouped loss, and its optimizer.

Wang, Zhang, Lei, Peng 2023, "Grouped Contrastive Learning of Self-supervised Sentence Representation".
"""

import math
from collections.abc import Sequence
from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from likewise.encoder import find_part
from likewise.encoder.modules import without_training_head
from likewise.encoder.text_cnn import TextCNN, TrainingAttention, WordAttention
from likewise.encoder.training_modules import DrawnUnknownWords, NoisyWords, Predictor, Projector
from likewise.encoder.word_vectors import MAX_WORDS, build_word_vectors
from likewise.losses import functional
from likewise.losses.encoder_loss import CollapseError, EncoderLoss
from likewise.recipes.gclsr import LIGHT, GCLSROptions
from likewise.runs import processes

_PATIENCE = 10
"""Collapsed batches one after the other that end the run."""


def build_network(base: str, options: GCLSROptions, sentences: Any = None) -> SentenceTransformer:
    """Return word vectors, noise, attention, TextCNN, projector and predictor; noise and the last two train only."""
    longest = options.max_length or MAX_WORDS
    words = build_word_vectors(
        base, sentences, options.most_frequent, options.dimension, longest, options.weighted, options.trust_pickle
    )
    words.requires_grad_(options.train_words)
    cnn = TextCNN(words.get_embedding_dimension(), options.region_sizes, options.filters, edges=True)
    modules: list[Any] = [
        words,
        *([DrawnUnknownWords(options.unknown_drawn)] if options.unknown_drawn else []),
        *([NoisyWords(options.noise.to_dict())] if options.augmentation in ("partial", "full") else []),
        *([WordAttention() if options.attention_kept else TrainingAttention()] if options.attention else []),
        cnn,
        Projector(cnn.get_embedding_dimension(), options.compared, options.projector_layers),
        Predictor(options.compared, options.bottleneck),
    ]
    return SentenceTransformer(modules=modules)


def build_light_student(base: str, sentences: Sequence[str]) -> SentenceTransformer:
    """Return the encoder of the preset `light` before any training, with word vectors that learn."""
    encoder = without_training_head(build_network(base, LIGHT.updated(augmentation="none"), sentences))
    encoder[0].requires_grad_(True)
    return encoder.train()


class GroupedCosineLoss(EncoderLoss[GCLSROptions]):
    """The symmetric grouped loss with stop-gradient (GCLSR, equations 6 and 7), from -1 (all views agree) to 1.

    The two views go through the encoder one after the other, each with its own batch statistics, as in SimSiam.

    Inputs: one column of sentences (the noise makes two views of it) or two (a sentence and another version of it).
    """

    def __init__(self, encoder: nn.Module, options: GCLSROptions) -> None:
        super().__init__(encoder, options)
        self._collapsed = 0
        self._seen: dict[str, list[float]] = {}

    def _loss(self, *columns: dict[str, Any]) -> Tensor:
        first, second = self.model(dict(columns[0])), self.model(dict(columns[-1]))
        self._watch(first)
        size = self.options.group_size or first["projection"].shape[1]
        return (
            functional.grouped_cosine(first["prediction"], second["projection"], size)
            + functional.grouped_cosine(second["prediction"], first["projection"], size)
        ) / 2

    def measures(self) -> dict[str, float]:
        """Return the mean spread of embeddings and of projections since the last call, for the log."""
        means = {name: sum(values) / len(values) for name, values in self._seen.items()}
        self._seen = {}
        return means

    def _watch(self, outputs: dict[str, Tensor]) -> None:
        named = (("embedding_spread", "sentence_embedding"), ("projection_spread", "projection"))
        # Of all processes: they stop together.
        found = {name: float(functional.spread(self.gathered(outputs[key].detach())[0])) for name, key in named}
        if not self.model.training:
            return
        for name, value in found.items():
            self._seen.setdefault(name, []).append(value)
        least = self.options.collapse_below
        # Written so that a spread that is not a number counts as collapsed too.
        fine = not least or all(value >= least for value in found.values())
        self._collapsed = 0 if fine else self._collapsed + 1
        if self._collapsed >= _PATIENCE:
            spreads = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in found.items())
            raise CollapseError(
                f"training collapsed: in {_PATIENCE} consecutive batches nearly all sentences had the same vector "
                f"({spreads}; 1 is even, below {least} is collapsed, nan is a rate too high). Lower learning_rate or "
                "predictor_rate, lengthen warmup_epochs, or give larger batches; collapse_below=0 continues regardless."
            )


class WarmupCosine(LambdaLR):
    """A schedule of linear warm-up over `warmup` updates and cosine decay to 0 at `steps`.

    A group of the optimizer with the entry 'constant' set to True keeps its rate. The momentum is the first of
    `momenta` during the rise, the second after it.
    """

    def __init__(self, optimizer: SGD, steps: int, warmup: int, momenta: tuple[float, float]) -> None:
        self.steps, self.warmup, self.momenta = steps, warmup, momenta
        super().__init__(
            optimizer,
            [(lambda step: 1.0) if group.get("constant") else self.factor for group in optimizer.param_groups],
        )

    def factor(self, step: int) -> float:
        """Return the share of the peak rate at an update, counted from 0."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        return 0.5 * (1 + math.cos(math.pi * (step - self.warmup) / max(1, self.steps - self.warmup)))

    def step(self, epoch: int | None = None) -> None:
        """Set the rates and the momentum of the next update."""
        super().step(epoch)
        for group in self.optimizer.param_groups:
            group["momentum"] = self.momenta[self.last_epoch >= self.warmup]


def build_optimizer(encoder: SentenceTransformer, options: GCLSROptions, steps: int) -> tuple[Any, Any]:
    """Return the SGD of section 4.1 and its schedule; the predictor has a constant rate of its own, unless it is 0."""
    predictor = find_part(encoder, Predictor)
    own = list(predictor.parameters()) if predictor and options.predictor_rate else []
    known = {id(parameter) for parameter in own}
    others = [one for one in encoder.parameters() if one.requires_grad and id(one) not in known]
    rate = options.learning_rate * options.batch_size * options.accumulation * processes.count() / 128
    groups: list[dict[str, Any]] = [{"params": others}]
    if own:
        groups.append({"params": own, "lr": options.predictor_rate, "constant": True})
    momenta = options.momentum, options.momentum_after
    optimizer = SGD(groups, lr=rate, momentum=momenta[0], nesterov=momenta[0] > 0, weight_decay=options.weight_decay)
    warmup = steps * options.warmup_epochs // options.epochs
    return optimizer, WarmupCosine(optimizer, steps, warmup, momenta)
