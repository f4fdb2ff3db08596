"""SNCSE: the hidden state at the mask of a prompt, and the sentence's own negation as a soft negative.

Wang et al. 2022, "SNCSE: Contrastive Learning for Unsupervised Sentence Embedding with Soft Negative Samples". Where a
value comes from, and what differs from the paper: docs/papers.md.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from likewise.corpus import PreparedCorpus
from likewise.encoder.mask_prompt import TEMPLATE, MaskPrompt, build_mask_prompt_encoder
from likewise.losses.sncse import Role, SNCSELoss
from likewise.recipes.collate import TextCollator
from likewise.recipes.negations import rows_needed, with_negations
from likewise.recipes.options import OptionError, TrainingOptions, option
from likewise.recipes.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class SNCSEOptions(TrainingOptions):
    """The options of SNCSE; the defaults are the paper's for BERT-base (section 3.2)."""

    template: str = option(TEMPLATE, "Prompt with one X, where the sentence goes, and one [MASK].")
    head: bool = option(True, "Train through an MLP head that the saved model does not have.")
    dropout: float = option(0.1, "Dropout of the encoder in training.")
    temperature: float = option(0.05, "Temperature tau of InfoNCE.")
    negation: Role = option("soft-negative", "What the negation of a sentence is to it.")
    alpha: float = option(0.1, "Least difference of the cosines of positive and negation.")
    beta: float = option(0.3, "Largest such difference; 2: no bound.")
    weight: float = option(1e-3, "Weight lambda of the bidirectional margin loss.")
    processes: int = option(1, "Processes that parse the sentences for their negations.")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive("temperature", "processes")
        self._not_negative("weight", "alpha")
        if self.alpha > self.beta:
            raise OptionError(f"alpha {self.alpha} is larger than beta {self.beta}: no difference lies between them")
        if not 0 < self.dropout < 1:
            raise OptionError("the two views of a sentence differ by dropout alone: set dropout above 0 and below 1")
        try:
            MaskPrompt.parse(self.template)
        except ValueError as error:
            raise OptionError(str(error)) from None


@dataclass
class NegationCollator:
    """Rows {'sentence', 'negation'} to B sentences followed by K negations, and the rows that these belong to."""

    texts: TextCollator
    # Read by sentence-transformers' trainer; the corpus has no labels.
    valid_label_columns: tuple[str, ...] = ()

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch {'sentence_input_ids': (B + K, T), ..., 'sentence_rows': (K,)}."""
        batch = self.texts(rows)
        with_negation = [i for i, row in enumerate(rows) if row.get("negation")]
        return batch | {"sentence_rows": torch.tensor(with_negation, dtype=torch.long)}


def _sentences_and_negations(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {"sentence": [*(row["sentence"] for row in rows), *(n for row in rows if (n := row.get("negation")))]}


def _add_negations(
    corpus: PreparedCorpus, dataset: Any, options: SNCSEOptions, seed: int, progress: Callable[[int], None]
) -> Any:
    if options.negation == "none":
        return dataset
    batch = options.batch_size * options.accumulation
    dataset = dataset.select(rows_needed(len(dataset), batch, options.max_steps, seed))
    digest = hashlib.blake2b(digest_size=6)
    for start in range(0, len(dataset), 10_000):
        digest.update("\n".join(dataset[start : start + 10_000]["sentence"]).encode("utf-8", "surrogatepass"))
    return with_negations(corpus, dataset, digest.hexdigest(), options.processes, progress)


def _encoder(base: str, options: SNCSEOptions) -> Any:
    return build_mask_prompt_encoder(base, options.template, head=options.head, dropout=options.dropout)


def _collator(encoder: Any, options: SNCSEOptions, seed: int) -> NegationCollator:
    most = encoder.max_seq_length or encoder.tokenizer.model_max_length
    length = min(options.max_length or most, most)
    taken = len(encoder.tokenizer("")["input_ids"])
    if length <= taken:
        raise OptionError(f"max_length {length} leaves no room: the template alone has {taken} tokens")
    return NegationCollator(TextCollator(encoder.tokenizer, _sentences_and_negations, {"sentence": length}))


def _loss(encoder: Any, options: SNCSEOptions) -> SNCSELoss:
    return SNCSELoss(encoder, options.negation, options.temperature, options.alpha, options.beta, options.weight)


PAPER_BASE = SNCSEOptions(batch_size=256, learning_rate=1e-5, sam_rho=0.0)
PAPER_LARGE = dataclasses.replace(PAPER_BASE, batch_size=128, learning_rate=5e-6)
CPU = SNCSEOptions(batch_size=64, learning_rate=1e-4, max_length=48, eval_steps=50, sam_rho=0.0)

SNCSE = Recipe(
    name="sncse",
    summary="Contrastive learning at the mask of a prompt, with the sentence's own negation as a soft negative.",
    source="Wang et al. 2022, SNCSE",
    presets={
        "cpu": CPU,
        "paper-base": PAPER_BASE,
        "paper-large": PAPER_LARGE,
        "paper-roberta-base": dataclasses.replace(PAPER_BASE, weight=5e-4),
        "paper-roberta-large": dataclasses.replace(PAPER_LARGE, weight=5e-4),
    },
    build_encoder=_encoder,
    build_collator=_collator,
    build_loss=_loss,
    add_columns=_add_negations,
)
