"""ConSERT: two views of a sentence made on its token embeddings, under NT-Xent.

Yan et al. 2021, "ConSERT: A Contrastive Framework for Self-Supervised Sentence Representation Transfer", no labels.
"""

from typing import Any, Literal

import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.encoder.build import LAST_TWO, build_encoder, build_layer_average
from likewise.errors import LikewiseError
from likewise.losses import EncoderLoss, functional
from likewise.recipes.options import ContrastiveOptions, SharpOptions
from likewise.recipes.recipe import Reading, Recipe, TextCollator
from likewise.runs.options import OptionError, option
from likewise.systems.embedding_views import cut_features, cut_tokens, shuffle_positions

_RELATIVE = ("relative_attention_num_buckets", "relative_attention")
"""Settings of transformers whose layers look at the distance between two tokens: MPNet's, and DeBERTa's."""

_TOKENS = ("input_ids", "token_type_ids")

View = Literal["none", "token-cutoff", "feature-cutoff", "shuffle", "dropout"]


class ConSERTOptions(ContrastiveOptions, SharpOptions):
    """The options of ConSERT."""

    pooling: Literal["last-two", "mean", "cls"] = option(
        "last-two", "Pooling: which token vectors are averaged, or [CLS]."
    )
    first: View = option("feature-cutoff", "How the embeddings are changed in the first view.")
    second: View = option("shuffle", "How the embeddings are changed in the second view.")
    token_share: float = option(0.15, "Fraction of tokens that token cutoff removes.", ge=0, le=1)
    feature_share: float = option(0.2, "Fraction of features that feature cutoff removes.", ge=0, le=1)
    dropout_share: float = option(0.2, "Dropout rate of the embeddings in the view 'dropout'.", ge=0, lt=1)

    def _check(self) -> None:
        super()._check()
        if self.first == self.second == "none" and not self.dropout:
            raise OptionError("first=none, second=none and dropout=0 leave the two views equal: change one of them")
        if self.chunk:
            raise OptionError("consert makes its views inside of the encoder, for a whole batch: drop chunk")

    def changed(self, view: View, embeddings: Tensor, mask: Tensor) -> Tensor:
        """Return the embeddings (B, T, D) of tokens with a mask (B, T) in a view (ConSERT, section 3.3)."""
        if view == "token-cutoff":
            return cut_tokens(embeddings, mask, self.token_share)
        if view == "feature-cutoff":
            return cut_features(embeddings, self.feature_share)
        return F.dropout(embeddings, self.dropout_share) if view == "dropout" else embeddings


class ConSERTLoss(EncoderLoss[ConSERTOptions]):
    """NT-Xent over two views of each sentence (ConSERT, equation 1).

    Inputs: one column of sentences. No labels.
    """

    def __init__(self, encoder: SentenceTransformer, options: ConSERTOptions) -> None:
        super().__init__(encoder, options)
        if not isinstance(self._embeddings, nn.Module):
            name = type(encoder[0].auto_model).__name__
            raise LikewiseError(
                f"ConSERT disturbs the output of a transformer's `embeddings`, and {name} has none: take a BERT- or "
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

    def _loss(self, sentences: dict[str, Any]) -> Tensor:
        first, second = (self.view(sentences, view) for view in (self.options.first, self.options.second))  # (B, D)
        (all_first, offset), (all_second, _) = self.gathered(first), self.gathered(second)
        return functional.nt_xent_symmetric(first, second, self.options.temperature, (all_first, all_second), offset)

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
        hook = embeddings.register_forward_hook(lambda _, inputs, output: self.options.changed(view, output, mask))
        try:
            return self.vectors(features)
        finally:
            hook.remove()


def _encoder(base: str, options: ConSERTOptions) -> Any:
    if options.pooling == "last-two":
        return build_layer_average(base, LAST_TWO, dropout=options.dropout)
    return build_encoder(base, pooling=options.pooling, head=False, dropout=options.dropout)


# Those of the authors' unsupervised run of BERT-base.
PAPER_BASE = ConSERTOptions(
    batch_size=96,
    learning_rate=5e-7,
    epochs=10,
    max_length=64,
    eval_steps=200,
    sam_rho=0.0,
    length_batches=False,
    dropout=0.0,
    temperature=0.1,
)
CPU = PAPER_BASE.updated(
    batch_size=128, learning_rate=1e-5, epochs=1, max_length=32, eval_steps=50, length_batches=True
)

CONSERT = Recipe(
    name="consert",
    summary="Contrastive learning on views made of the token embeddings: cutoff of features or tokens, shuffling.",
    source="Yan et al. 2021, ConSERT, unsupervised",
    presets={"cpu": CPU, "paper-base": PAPER_BASE, "paper-large": PAPER_BASE.updated(batch_size=32, max_length=40)},
    build_encoder=_encoder,
    build_collator=lambda encoder, options, seed: TextCollator(
        lambda rows: {"sentence": [row["sentence"] for row in rows]}, Reading.of(encoder, options.max_length)
    ),
    build_loss=ConSERTLoss,
)
