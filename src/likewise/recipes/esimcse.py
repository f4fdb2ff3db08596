"""ESimCSE: SimCSE with repeated sub-words in the positive and a momentum encoder's queue among the negatives.

Wu et al. 2022, "ESimCSE: Enhanced Sample Building Method for Contrastive Learning of Unsupervised Sentence Embedding".
Where a value comes from, and what differs from the paper: docs/papers.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from likewise.augment.spans import sentence_rng
from likewise.augment.word_edits import repeat_tokens
from likewise.encoder.build import build_encoder
from likewise.encoder.encoder_copy import MomentumQueue
from likewise.losses.esimcse import ESimCSELoss
from likewise.recipes.collate import tokens_read
from likewise.recipes.options import HeadOptions
from likewise.recipes.recipe import Recipe
from likewise.runs.options import OptionError, option


class ESimCSEOptions(HeadOptions):
    """The options of ESimCSE; the defaults are the paper's for BERT-base."""

    repetition: float = option(0.32, "Largest share of sub-words repeated in the positive; 0: at most two.", ge=0, le=1)
    momentum: float = option(0.995, "Momentum lambda of the encoder that fills the queue.", ge=0, le=1)
    queue: float = option(2.5, "Vectors that the queue holds, as a multiple of the batch size; 0: no queue.", ge=0)
    length_batches: bool = option(False, "Batches of sentences of near-equal length.")
    sam_rho: float = option(0.0, "Always 0 here: a second pass would fill the queue twice.")

    def _check(self) -> None:
        super()._check()
        if self.sam_rho:
            raise OptionError("esimcse fills its queue in every pass, and SAM makes two of an update: set sam_rho to 0")


@dataclass
class RepetitionCollator:
    """Rows {'sentence'} to two columns of tokens: the sentences, and the same ones with repeated sub-words.

    Args:
        tokenizer: a Hugging Face tokenizer.
        length: tokens kept of a sentence; repetitions come on top, as in the authors' code.
        longest: tokens that the base reads.
        rate: dup_rate.
        seed: fixes the repetitions of each sentence.
    """

    tokenizer: Any
    length: int
    longest: int
    rate: float
    seed: int
    # Read by sentence-transformers' trainer; the corpus has no labels.
    valid_label_columns: tuple[str, ...] = ()

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch {'sentence_input_ids': (B, T), ..., 'repeated_input_ids': (B, U), ...}."""
        sentences = [row["sentence"] for row in rows]
        tokens = self.tokenizer(sentences, truncation=True, max_length=self.length, return_special_tokens_mask=True)
        repeated = [
            self._repeat(ids, special, sentence)
            for ids, special, sentence in zip(
                tokens["input_ids"], tokens["special_tokens_mask"], sentences, strict=True
            )
        ]
        batch: dict[str, Any] = {}
        for column, ids in (("sentence", tokens["input_ids"]), ("repeated", repeated)):
            padded = self.tokenizer.pad({"input_ids": ids}, padding=True, return_tensors="pt")
            batch |= {f"{column}_{name}": padded[name] for name in ("input_ids", "attention_mask")}
        return batch

    def _repeat(self, ids: list[int], special: list[int], sentence: str) -> list[int]:
        if 0 not in special:  # a sentence of no token
            return ids
        # Special tokens stand at the ends; one that a user wrote into a text is text.
        start, end = special.index(0), len(special) - special[::-1].index(0)
        inner = repeat_tokens(ids[start:end], self.rate, sentence_rng(sentence, self.seed))
        room = self.longest - start - (len(ids) - end)
        return [*ids[:start], *inner[:room], *ids[end:]]


def _encoder(base: str, options: ESimCSEOptions) -> Any:
    encoder = build_encoder(base, pooling=options.pooling, head=options.head, dropout=options.dropout)
    size = int(options.queue * options.batch_size)
    if size:
        dimension = encoder.get_embedding_dimension()
        encoder.append(MomentumQueue.of(encoder, size=size, dimension=dimension, momentum=options.momentum))
    return encoder


def _collator(encoder: Any, options: ESimCSEOptions, seed: int) -> RepetitionCollator:
    longest = min(tokens_read(encoder), encoder.tokenizer.model_max_length)
    length = min(options.max_length or longest, longest)
    return RepetitionCollator(encoder.tokenizer, length, longest, options.repetition, seed)


def _loss(encoder: Any, options: ESimCSEOptions) -> ESimCSELoss:
    return ESimCSELoss(encoder, options.temperature)


PAPER_BASE = ESimCSEOptions(batch_size=64, learning_rate=3e-5, max_length=32)
CPU = PAPER_BASE.updated(batch_size=128, learning_rate=1e-4, eval_steps=60, length_batches=True)

ESIMCSE = Recipe(
    name="esimcse",
    summary="SimCSE with repeated sub-words in the positive and a momentum encoder's queue of further negatives.",
    source="Wu et al. 2022, ESimCSE",
    presets={
        "cpu": CPU,
        "paper-base": PAPER_BASE,
        "paper-large": PAPER_BASE.updated(learning_rate=1e-5),
    },
    build_encoder=_encoder,
    build_collator=_collator,
    build_loss=_loss,
)
