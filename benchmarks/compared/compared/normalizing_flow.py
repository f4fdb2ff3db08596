"""A normalizing flow after an encoder: an invertible map of sentence vectors to a Gaussian space.

Li et al. 2020, "On the Sentence Embeddings from Pre-trained Language Models" (BERT-flow). The flow is put together of
zuko's transformations. Letters of the shapes: B sentences, D embedding.
"""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from likewise.encoder.modules import SavedModule

Coupling = Literal["additive", "affine"]


class NormalizingFlow(SavedModule):
    """An invertible map f of sentence vectors, with log p(x) = log N(f(x); 0, 1) + log |det df/dx|.

    As in Glow (Kingma and Dhariwal 2018): steps of a scale and shift of each number and a coupling, in which one half
    of the numbers is moved by what a small network makes of the other half. The halves are drawn again for each step.
    The vectors are first made standard with the mean and deviation of the sample that the flow is fitted to.

    Args:
        coupling: additive moves numbers, affine scales them too.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, dimension: int, steps: int = 9, hidden: int = 256, coupling: Coupling = "additive") -> None:
        super().__init__()
        from zuko.distributions import DiagNormal
        from zuko.flows import Flow, GeneralCouplingTransform, UnconditionalDistribution, UnconditionalTransform
        from zuko.transforms import AdditiveTransform, DependentTransform, MonotonicAffineTransform

        self.dimension, self.steps, self.hidden, self.coupling = dimension, steps, hidden, coupling
        self.register_buffer("mean", torch.zeros(dimension))
        self.register_buffer("deviation", torch.ones(dimension))
        univariate: dict[str, Any] = (
            {"univariate": AdditiveTransform, "shapes": ((),)}
            if coupling == "additive"
            else {"univariate": MonotonicAffineTransform, "shapes": ((), ())}
        )

        def scale() -> nn.Module:
            def of_each(shift: Tensor, factor: Tensor) -> Any:
                return DependentTransform(MonotonicAffineTransform(shift, factor), 1)

            return UnconditionalTransform(of_each, torch.zeros(dimension), torch.zeros(dimension))

        def coupling_layer() -> nn.Module:
            mask = torch.randperm(dimension) % 2 == 0
            return GeneralCouplingTransform(dimension, mask=mask, hidden_features=(hidden,), **univariate)

        parts = [part for _ in range(steps) for part in (scale(), coupling_layer())]
        base = UnconditionalDistribution(DiagNormal, torch.zeros(dimension), torch.ones(dimension), buffer=True)
        self.flow = Flow([*parts, scale()], base)

    def standardise_by(self, vectors: Tensor) -> None:
        """Standardise by a sample (N, D), N of 2 or more; a dimension that does not vary keeps its scale."""
        deviation, mean = torch.std_mean(vectors.double(), dim=0)
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(deviation > 1e-8, deviation, torch.ones_like(deviation)))

    def latent(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return f(x) (B, D) and log |det df/dx| (B,) of vectors (B, D)."""
        standard = (vectors - self.mean) / self.deviation
        found, log_det = self.flow().transform.call_and_ladj(standard)
        return found, log_det - self.deviation.log().sum()

    def log_prob(self, vectors: Tensor) -> Tensor:
        """Return the logarithm of the density (B,) of vectors (B, D)."""
        found, log_det = self.latent(vectors)
        return log_det - 0.5 * (found.square().sum(dim=-1) + self.dimension * math.log(2 * math.pi))

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Map 'sentence_embedding' (B, D) to the Gaussian space (B, D)."""
        features["sentence_embedding"] = self.latent(features["sentence_embedding"].float())[0]
        return features

    def get_embedding_dimension(self) -> int:
        """Return the dimension D of the vectors."""
        return self.dimension
