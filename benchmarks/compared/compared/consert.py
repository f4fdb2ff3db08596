"""ConSERT: two views of a sentence made on its token embeddings, under NT-Xent.

Yan et al. 2021, "ConSERT: A Contrastive Framework for Self-Supervised Sentence Representation Transfer", no labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from likewise.recipes import ContrastiveOptions, OptionError, Reading, Recipe, TextCollator, option

if TYPE_CHECKING:
    from torch import nn

View = Literal["none", "token-cutoff", "feature-cutoff", "shuffle", "dropout"]


class ConSERTOptions(ContrastiveOptions):
    """The options of ConSERT."""

    pooling: Literal["last-two", "mean", "cls"] = option(
        "last-two", "Pooling of token vectors: the layers that are averaged, or [CLS]."
    )
    first: View = option("feature-cutoff", "Change of the embeddings in the first view.")
    second: View = option("shuffle", "Change of the embeddings in the second view.")
    token_share: float = option(0.15, "Fraction of tokens that token cutoff removes.", ge=0, le=1)
    feature_share: float = option(0.2, "Fraction of features that feature cutoff removes.", ge=0, le=1)
    dropout_share: float = option(0.2, "Dropout rate of the embeddings in the view 'dropout'.", ge=0, lt=1)

    def _check(self) -> None:
        super()._check()
        if self.first == self.second == "none" and not self.dropout:
            raise OptionError("first=none, second=none and dropout=0 leave the two views equal: change one of them")
        if self.chunk:
            raise OptionError("consert makes its views inside of the encoder, for a whole batch: drop chunk")


def _encoder(base: str, options: ConSERTOptions) -> Any:
    from compared.averages import LAST_TWO, build_layer_average
    from likewise.encoder import build_encoder

    if options.pooling == "last-two":
        return build_layer_average(base, LAST_TWO, dropout=options.dropout)
    return build_encoder(base, pooling=options.pooling, head=False, dropout=options.dropout)


def _loss(encoder: Any, options: ConSERTOptions) -> nn.Module:
    from compared.consert_loss import ConSERTLoss

    return ConSERTLoss(encoder, options)


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
    build_loss=_loss,
)
