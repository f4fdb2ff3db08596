"""ConSERT: two views of a sentence made on its token embeddings, under NT-Xent of both directions."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.augment.embedding_views import cut_features, cut_tokens, shuffle_positions
from likewise.errors import LikewiseError
from likewise.losses import functional
from likewise.runs.processes import gather_rows

ViewKind = Literal["none", "token-cutoff", "feature-cutoff", "shuffle", "dropout"]


@dataclass(frozen=True)
class EmbeddingView:
    """A view: one way to perturb the embeddings (ConSERT, section 3.3).

    `share` is of the tokens or features that are cut, or the probability that an element of the embeddings is dropped.
    """

    kind: ViewKind = "none"
    share: float = 0.0

    def embeddings(self, embeddings: Tensor, mask: Tensor) -> Tensor:
        """Return the embeddings (B, T, D) after the view."""
        if self.kind == "token-cutoff":
            return cut_tokens(embeddings, mask, self.share)
        if self.kind == "feature-cutoff":
            return cut_features(embeddings, self.share)
        return F.dropout(embeddings, self.share) if self.kind == "dropout" else embeddings


class ConSERTLoss(nn.Module):
    """NT-Xent over two views of each sentence (ConSERT, equation 1).

    Args:
        model: the encoder; its transformer has a module `embeddings`, as BERT, RoBERTa and their kin.

    Inputs: one column of sentences. No labels.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        first: EmbeddingView | None = None,
        second: EmbeddingView | None = None,
        temperature: float = 0.1,
    ) -> None:
        super().__init__()
        self.model = model
        self.first, self.second = first or EmbeddingView(), second or EmbeddingView()
        self.temperature = temperature
        transformer: Any = model[0].auto_model
        if not isinstance(getattr(transformer, "embeddings", None), nn.Module):
            raise LikewiseError(
                f"ConSERT disturbs the output of a transformer's `embeddings`, and {type(transformer).__name__} has "
                "none: take a BERT- or RoBERTa-like base"
            )
        # In a dict: the loss shall not own it a second time.
        self._transformer: dict[str, Any] = {"embeddings": transformer.embeddings}

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch, a scalar."""
        features = next(iter(sentence_features))
        first, second = self.view(features, self.first), self.view(features, self.second)  # (B, D) each
        (all_first, offset), (all_second, _) = gather_rows(first), gather_rows(second)
        return functional.nt_xent_symmetric(first, second, self.temperature, (all_first, all_second), offset)

    def view(self, features: dict[str, Any], view: EmbeddingView) -> Tensor:
        """Return the sentence vectors (B, D) of tokens (B, T) under a view."""
        features, mask = dict(features), features["attention_mask"]
        embeddings = self._transformer["embeddings"]
        if view.kind == "shuffle":
            features["position_ids"] = shuffle_positions(mask) + self._first_position()
        hook = embeddings.register_forward_hook(lambda module, inputs, output: view.embeddings(output, mask))
        try:
            return self.model(features)["sentence_embedding"]
        finally:
            hook.remove()

    def _first_position(self) -> int:
        # RoBERTa and its kin count positions from behind the padding's number, and say so by this attribute.
        padding = getattr(self._transformer["embeddings"], "padding_idx", None)
        return 0 if padding is None else int(padding) + 1
