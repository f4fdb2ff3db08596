"""ConSERT: two views of a sentence made on its token embeddings, under NT-Xent.

Yan et al. 2021, "ConSERT: A Contrastive Framework for Self-Supervised Sentence Representation Transfer", no labels.
Where a value comes from, and what differs from the paper: docs/papers.md.
"""

from typing import Any, Literal

from likewise.encoder.build import LAST_TWO, build_encoder, build_layer_average
from likewise.losses.consert import ConSERTLoss, EmbeddingView, ViewKind
from likewise.recipes.collate import TextCollator, sentences_of
from likewise.recipes.options import ContrastiveOptions
from likewise.recipes.recipe import Recipe
from likewise.runs.options import OptionError, option


class ConSERTOptions(ContrastiveOptions):
    """The options of ConSERT."""

    pooling: Literal["last-two", "mean", "cls"] = option("last-two", "Token vectors that are averaged, or [CLS].")
    first: ViewKind = option("feature-cutoff", "How the embeddings are changed in the first view.")
    second: ViewKind = option("shuffle", "How the embeddings are changed in the second view.")
    token_share: float = option(0.15, "Share of tokens that token-cutoff takes out.", ge=0, le=1)
    feature_share: float = option(0.2, "Share of features that feature-cutoff takes out.", ge=0, le=1)
    dropout_share: float = option(
        0.2, "Probability that an element of the embeddings is dropped in the view 'dropout'.", ge=0, lt=1
    )

    def _check(self) -> None:
        super()._check()
        if self.first == self.second == "none" and not self.dropout:
            raise OptionError("first=none, second=none and dropout=0 leave the two views equal: change one of them")
        if self.chunk:
            raise OptionError("consert makes its views inside of the encoder, for a whole batch: drop chunk")

    def view(self, kind: ViewKind) -> EmbeddingView:
        """Return a view of that kind with its share."""
        shares = {"token-cutoff": self.token_share, "feature-cutoff": self.feature_share, "dropout": self.dropout_share}
        return EmbeddingView(kind, shares.get(kind, 0.0))


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
    build_collator=lambda encoder, options, seed: TextCollator.of(
        encoder, sentences_of, "sentence", length=options.max_length
    ),
    build_loss=lambda encoder, options: ConSERTLoss(
        encoder, options.view(options.first), options.view(options.second), options.temperature
    ),
)
