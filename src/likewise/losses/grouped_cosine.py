"""The loss of GCLSR: each view's prediction against the other's projection, in groups of features."""

from collections.abc import Iterable

from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.errors import LikewiseError
from likewise.losses import functional
from likewise.runs.processes import gather_rows


class CollapseError(LikewiseError):
    """Raised if all sentences collapse to one vector; the message gives the figures and what to change."""


class GroupedCosineLoss(nn.Module):
    """The symmetric grouped loss with stop-gradient (GCLSR, equations 6 and 7).

    The two views go through the encoder one after the other, each with its own batch statistics, as in SimSiam.

    Args:
        model: the encoder; in training it returns 'projection' and 'prediction' besides 'sentence_embedding'.
        collapse_below: a spread of the normalised outputs below this counts as collapsed; 0 never does.
        patience: collapsed batches one after the other that end the run.

    Inputs: one column of sentences (the noise makes two views of it) or two (a sentence and another version of it).
    """

    def __init__(
        self, model: SentenceTransformer, group_size: int = 16, collapse_below: float = 0.01, patience: int = 10
    ) -> None:
        super().__init__()
        self.model = model
        self.group_size = group_size
        self.collapse_below, self.patience = collapse_below, patience
        self._collapsed = 0
        self._seen: dict[str, list[float]] = {}

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch, a scalar from -1 (all views agree) to 1."""
        columns = list(sentence_features)
        first = self.model(dict(columns[0]))
        second = self.model(dict(columns[-1]))
        self._watch(first)
        size = self.group_size or first["projection"].shape[1]
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
        found = {name: float(functional.spread(gather_rows(outputs[key].detach())[0])) for name, key in named}
        if not self.model.training:
            return
        for name, value in found.items():
            self._seen.setdefault(name, []).append(value)
        # Written so that a spread that is not a number counts as collapsed too.
        fine = not self.collapse_below or all(value >= self.collapse_below for value in found.values())
        self._collapsed = 0 if fine else self._collapsed + 1
        if self._collapsed >= self.patience:
            spreads = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in found.items())
            raise CollapseError(
                f"training collapsed: in {self.patience} consecutive batches nearly all sentences had the same "
                f"vector ({spreads}; 1 is even, below {self.collapse_below} is collapsed, nan is a rate too high). "
                "Lower learning_rate or predictor_rate, lengthen warmup_epochs, or give larger batches; "
                "collapse_below=0 continues regardless."
            )
