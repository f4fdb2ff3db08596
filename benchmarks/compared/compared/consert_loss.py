"""The loss of ConSERT: NT-Xent over two views that are made on the token embeddings.

Yan et al. 2021, "ConSERT: A Contrastive Framework for Self-Supervised Sentence Representation Transfer", no labels.
"""

from typing import Any

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from compared.consert import ConSERTOptions, View
from compared.embedding_views import cut_features, cut_tokens, shuffle_positions
from likewise.errors import LikewiseError
from likewise.losses import EncoderLoss
from likewise.losses.functional import cosine_matrix

_RELATIVE = ("relative_attention_num_buckets", "relative_attention")
"""Settings of transformers whose layers look at the distance between two tokens: MPNet's, and DeBERTa's."""

_TOKENS = ("input_ids", "token_type_ids")


class ConSERTLoss(EncoderLoss[ConSERTOptions]):
    """NT-Xent over two views of each sentence (ConSERT, equation 1).

    Inputs: one column of sentences. No labels.
    """

    def __init__(self, encoder: SentenceTransformer, options: ConSERTOptions) -> None:
        super().__init__(encoder, options)
        if not isinstance(self._embeddings, nn.Module):
            name = type(encoder[0].auto_model).__name__
            raise LikewiseError(
                f"ConSERT modifies the output of a transformer's `embeddings`, but {name} has none: use a BERT- or "
                "RoBERTa-like base"
            )
        transformer: Any = encoder[0]
        config = transformer.auto_model.config
        self._relative = any(getattr(config, name, None) for name in _RELATIVE)
        if self._relative and options.pooling == "cls" and "shuffle" in (options.first, options.second):
            raise LikewiseError(
                f"this base ({config.model_type}) has relative positions: its sentences are shuffled token by token, "
                "and [CLS] with them. Take --pooling last-two or mean, or another view than shuffle"
            )

    @property
    def _embeddings(self) -> Any:
        return getattr(self.encoder[0].auto_model, "embeddings", None)

    def _loss(self, *columns: dict[str, Any]) -> Tensor:
        (sentences,) = columns
        first, second = (self.view(sentences, view) for view in (self.options.first, self.options.second))  # (B, D)
        (all_first, offset), (all_second, _) = self.gathered(first), self.gathered(second)
        return nt_xent_symmetric(first, second, self.options.temperature, (all_first, all_second), offset)

    def view(self, features: dict[str, Any], view: View) -> Tensor:
        """Return the sentence vectors (B, D) of tokens (B, T) in a view."""
        mask, embeddings = features["attention_mask"], self._embeddings
        if view == "shuffle" and self._relative:
            # The same up to the order of the vectors, which a mean does not see. Other positions would not reach the
            # layers, which look at the distance between two tokens themselves.
            order = shuffle_positions(mask)
            moved = {name: features[name].gather(1, order) for name in _TOKENS if name in features}
            features = features | moved
        elif view == "shuffle":
            # RoBERTa and its kin count positions from behind the padding's number, and say so by this attribute.
            padding = getattr(embeddings, "padding_idx", None)
            features = features | {"position_ids": shuffle_positions(mask) + (0 if padding is None else padding + 1)}
        hook = embeddings.register_forward_hook(lambda _, inputs, output: changed(self.options, view, output, mask))
        try:
            return self.vectors(features)
        finally:
            hook.remove()


def nt_xent_symmetric(
    first: Tensor,
    second: Tensor,
    temperature: float = 0.1,
    everywhere: tuple[Tensor, Tensor] | None = None,
    offset: int = 0,
) -> Tensor:
    """Return NT-Xent over both views of a batch (SimCLR, as in ConSERT, equation 1), the mean over 2B rows.

    Each of the 2B rows has the other view of its sentence as positive and the 2N - 2 rows of the other sentences as
    negatives.

    Args:
        first, second: (B, D) each, row i of the same sentence in both.
        everywhere: both views (N, D) of all processes; row `offset + i` of each is row i here.
    """
    columns = torch.cat(everywhere or (first, second))  # (2N, D)
    cosines = cosine_matrix(torch.cat([first, second]), columns)  # (2B, 2N)
    rows = torch.arange(len(first), device=first.device) + offset
    own = torch.cat([rows, rows + len(columns) // 2])  # (2B,)
    return F.cross_entropy((cosines / temperature).scatter(1, own[:, None], -torch.inf), own.roll(len(first)))


def changed(options: ConSERTOptions, view: View, embeddings: Tensor, mask: Tensor) -> Tensor:
    """Return the embeddings (B, T, D) of tokens with a mask (B, T) in a view (ConSERT, section 3.3)."""
    if view == "token-cutoff":
        return cut_tokens(embeddings, mask, options.token_share)
    if view == "feature-cutoff":
        return cut_features(embeddings, options.feature_share)
    return F.dropout(embeddings, options.dropout_share) if view == "dropout" else embeddings
