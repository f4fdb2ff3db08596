"""The options of every stage and of the surrogate, and the presets, which have a section for each stage.

Nothing here imports torch: help texts need these options.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator

from likewise.recipes.recipe_options import WithPresets
from likewise.runs.options import OptionError, Options, option
from likewise.runs.whole_files import Record
from likewise.training.objectives import FinetuneOptions

TERMS = ("coherence", "centre", "left", "right")
"""The four terms of equation 3 in the order of their weights."""
FEATURES = ("cosine", "words", "fit", *TERMS)
"""The parts of a similarity in the form `pmi` in the order of their weights: of the encoder, and of equation 3."""

MATHEMATICS = {"context": 1, "context-origin": 2}
"""Version of the equations of the stages, and of those from scratch: see `Recipe.mathematics`."""


def _listed(value: object) -> object:
    """Parse '1, 2' or '[1, 2]' as a list."""
    return (
        [part.strip() for part in value.strip("[]() ").split(",") if part.strip()] if isinstance(value, str) else value
    )


class IndexOptions(Options):
    """The options of chunks, contexts and retrieval."""

    # Of less than 5, a document of one sentence more is cut into chunks that have no context.
    chunk_sentences: int = option(10, "Maximum number of sentences in a chunk.", ge=5)
    left: int = option(2, "Maximum number of sentences in a left context.", ge=1)
    right: int = option(2, "Maximum number of sentences in a right context.", ge=1)
    documents: int = option(0, "Maximum number of documents; 0 reads all.", ge=0)
    words: int = option(0, "Number of words after which no further document is read; 0 reads all.", ge=0)
    hash_bits: int = option(22, "Number of bits of the hash of a word or bigram.", ge=8, le=30)


class StatesOptions(Options):
    """The options of the frozen encoder."""

    encoder: str = option(
        "bundled:minilm", "Path or name of the encoder: a folder, a Hugging Face name, bundled:minilm or bundled:mpnet."
    )
    max_tokens: int = option(64, "Maximum number of word pieces of a sentence, which is truncated to it.", ge=3)
    precision: Literal["fp32", "bf16"] = option(
        "fp32", "Precision of the encoder; bf16 takes less than half of the time on a processor that supports bfloat16."
    )
    keep: Literal["tokens", "vectors", "pieces"] = option(
        "tokens",
        "Data stored for each sentence. tokens: its vector and the states of its word pieces, about 20 KB, so that a "
        "harvest encodes nothing again. vectors: its vector alone. pieces: its word pieces, without encoding.",
    )


class ModelOptions(Options):
    """The options that the discriminator and the generators share. The defaults are the preset `frozen`."""

    reads: str
    learning_rate: float = option(1e-3, "Peak learning rate of Adam.", gt=0)
    max_grad_norm: float = option(1.0, "Maximum norm to which gradients are clipped; 0 disables clipping.", ge=0)
    eval_steps: int = option(50, "Number of updates between two evaluations on the held-out documents.", ge=1)
    seed: int = option(1, "Random seed of weights, batches, dropout and the held-out part.", ge=0)


class DiscriminatorOptions(ModelOptions):
    """The options of the coherence discriminator (equation 1) and its training; its rate rises over 20 steps."""

    reads: Literal["states", "text"] = option(
        "states",
        "Input. states: vectors of the frozen encoder, for a small model. text: word pieces, for an LSTM from scratch.",
    )
    embedding: int = option(150, "Number of dimensions of a word piece's vector in the LSTM.", ge=1)
    hidden: int = option(300, "Number of LSTM units in each direction.", ge=1)
    rank: int = option(
        300, "Number of dimensions in which sentence and context are compared; 0 uses equation 1 as it stands.", ge=0
    )
    batch_size: int = option(192, "Number of sentences in a step, which are taken from whole documents.", ge=3)
    epochs: int = option(4, "Number of passes over the training documents; 0 skips training.", ge=0)
    held_out: float = option(
        0.1,
        "Fraction of documents held out: half of them choose the checkpoint, the other half give the accuracy.",
        gt=0,
        lt=1,
    )


class SelectionOptions(Options):
    """The options of a sentence's context set (section 3.3)."""

    strategy: Literal["two-step", "random"] = option(
        "two-step", "Selection of contexts: retrieval and ranking as in section 3.3, or random (section 5.4)."
    )
    size: int = option(50, "Number of contexts that are chosen for a sentence.", ge=1)
    candidates: int = option(20_000, "Number of chunks that are retrieved.", ge=1)
    screened: int = option(
        0, "Number of contexts that equation 3 ranks after the discriminator; 0 ranks by the discriminator alone.", ge=0
    )
    diversity: bool = option(
        True,
        "Whether to use at most one context per chunk, with sentences before the gap that overlap by less than half.",
    )
    same: float = option(
        0.8,
        "Jaccard similarity to the scored sentence from which a sentence in a context, or in its gap, excludes the "
        "context; above 1, no context is excluded.",
        gt=0,
    )

    def _check(self) -> None:
        if 0 < self.screened < self.size:
            raise OptionError(f"screened {self.screened} is less than size {self.size}: raise it, or set it to 0")


class GeneratorOptions(ModelOptions):
    """The options of the generators (equation 2) and their training."""

    reads: Literal["states", "text", "pretrained"] = option(
        "states",
        "Kind of generator. states: a small model on vectors of the frozen encoder. text: Transformers from scratch. "
        "pretrained: a language model that is not trained, so that training options have no effect.",
    )
    model: str = option(
        "bundled:smollm2", "Path or name of the causal language model: bundled:smollm2, a folder, or a hub name."
    )
    given: Literal["near", "both"] = option(
        "near",
        "Text that a pretrained model reads. near: the sentence before the gap, to score the one in it, and the one in "
        "the gap, to score the next. both: all of both sides, as in equation 2, at three times the cost.",
    )
    rank: int = option(128, "Number of dimensions of a word's vector in a log-bilinear model.", ge=1)
    width: int = option(1024, "Width of the Transformer's layers.", ge=1)
    heads: int = option(16, "Number of attention heads of the Transformer.", ge=1)
    feed_forward: int = option(4096, "Width of the Transformer's feed-forward layers.", ge=1)
    layers: int = option(6, "Number of layers in the Transformer's encoder, and in its decoder.", ge=1)
    dropout: float = option(0.3, "Dropout rate of the Transformer's layers.", ge=0, lt=1)
    vocabulary: int = option(
        8000, "Size of the vocabulary: the most frequent word pieces of the corpus; others are skipped.", ge=1
    )
    batch_size: int = option(128, "Number of examples in a step; each is used in all three tasks.", ge=1)
    accumulation: int = option(1, "Number of steps that are accumulated for one update.", ge=1)
    warmup_steps: int = option(
        200, "Number of updates over which the learning rate warms up from 0; at most a fifth of all updates.", ge=0
    )
    schedule: Literal["linear", "inverse_sqrt"] = option("linear", "Learning rate schedule after the warm-up.")
    beta2: float = option(0.98, "Adam's beta 2; beta 1 is 0.9.", gt=0, lt=1)
    epochs: int = option(3, "Number of passes over the examples.", ge=1)
    max_steps: int = option(0, "Maximum number of updates; 0 trains for all epochs.", ge=0)
    eval_steps: int = option(500, "Number of updates between two evaluations of the perplexity.")
    held_out: int = option(
        500, "Number of documents held out for the perplexity; at most a third of all documents.", ge=1
    )

    def _check(self) -> None:
        if self.width % self.heads:
            raise OptionError(f"width {self.width} is not a multiple of heads {self.heads}")


# Transformer (big) of Vaswani et al. 2017, table 3 and section 5: its sizes, dropout and schedule. No label smoothing:
# it hurts perplexity (section 5.4 there), and here the probability itself is the score.
LARGE = GeneratorOptions(
    reads="text",
    vocabulary=37_000,
    batch_size=64,
    accumulation=8,
    learning_rate=4.9e-4,
    warmup_steps=4000,
    schedule="inverse_sqrt",
    max_grad_norm=0.0,
    max_steps=300_000,
    epochs=1,
    eval_steps=5000,
)


class ScoreOptions(Options):
    """The options of equation 3 and of the similarity."""

    form: Literal["pmi", "paper"] = option(
        "pmi",
        "Form of the similarity. pmi: a weighted sum of the encoder's cosine, word match and fit, and of the "
        "agreement in each term of equation 3, from which its value without the sentence and its mean are "
        "subtracted. paper: equations 3 and 4.",
    )
    weights: Annotated[tuple[float, ...], BeforeValidator(_listed)] = option(
        (),
        "Weights of the terms, in this order. pmi: cosine, words, fit, coherence, centre, left, right. paper: "
        "coherence, sentence, left and right context. 0 disables a term. By default, the weights of the workspace, "
        "or equal weights.",
    )
    terms: Annotated[tuple[str, ...], BeforeValidator(_listed)] = option(
        ("coherence",),
        "Terms of the form pmi, with equal weights if no weights are given: coherence (of contexts), centre, left "
        "and right (by the generators), and cosine, words and fit (by the encoder alone, without contexts).",
    )

    def _check(self) -> None:
        if unknown := [name for name in self.terms if name not in FEATURES]:
            raise OptionError(f"there is no term {unknown[0]}; choose one of {', '.join(FEATURES)}")
        if not self.terms:
            raise OptionError(f"terms must be one or more of {', '.join(FEATURES)}")
        count, least = (len(FEATURES), -math.inf) if self.form == "pmi" else (len(TERMS), 0)
        if self.weights and (len(self.weights) != count or min(self.weights) < least or not any(self.weights)):
            kind = "numbers" if self.form == "pmi" else "numbers of 0 or more"
            raise OptionError(
                f"weights of form={self.form} must be {count} {kind}, not all of them 0, and not {list(self.weights)}"
            )


class HarvestOptions(Options):
    """The options of a harvest."""

    pairs: int = option(100_000, "Approximate number of pairs in the whole harvest; repeated pairs are dropped.", ge=1)
    ranks: Annotated[tuple[int, ...], BeforeValidator(_listed)] = option(
        (1, 2, 4, 8, 16, 32, 64), "Ranks of the partners of an anchor, by the encoder or by the words they share."
    )
    random: int = option(3, "Number of random partners of an anchor.", ge=0)
    anchors: int = option(50, "Number of anchors in a shard; a crash loses one shard for each process.", ge=2)
    min_words: int = option(4, "Minimum number of words; shorter sentences are not drawn.", ge=1)
    max_words: int = option(40, "Maximum number of words; longer sentences are not drawn.", ge=1)
    held_out: float = option(
        0.01, "Fraction of the pairs for the dev part, and the same fraction for the test part.", gt=0, lt=0.5
    )
    seed: int = option(1, "Random seed of the pairs and their split.", ge=0)

    def _check(self) -> None:
        if not self.ranks or min(self.ranks) < 1 or len(set(self.ranks)) < len(self.ranks):
            raise OptionError(f"ranks must be distinct integers of 1 or more, not {list(self.ranks)}")
        if self.min_words > self.max_words:
            raise OptionError(
                f"min_words {self.min_words} and max_words {self.max_words} exclude every sentence: lower min_words "
                f"or raise max_words"
            )


SECTIONS: dict[str, type[Options]] = {
    "index": IndexOptions,
    "states": StatesOptions,
    "discriminator": DiscriminatorOptions,
    "selection": SelectionOptions,
    "generators": GeneratorOptions,
    "score": ScoreOptions,
    "harvest": HarvestOptions,
}
"""Section of the file to the class of its options."""

PRESETS: dict[str, dict[str, Options]] = {
    "frozen": {},
    "pretrained": {
        "generators": GeneratorOptions(reads="pretrained"),
        "selection": SelectionOptions(size=10),
        "score": ScoreOptions(terms=TERMS),
    },
    "paper": {
        "states": StatesOptions(keep="pieces"),
        "discriminator": DiscriminatorOptions(reads="text", rank=0, epochs=1, learning_rate=1e-4),
        "generators": LARGE,
        "selection": SelectionOptions(size=500, screened=2_000),
        "score": ScoreOptions(form="paper"),
    },
}
"""Preset to the sections that differ from the defaults."""


def read_sections(assignments: Sequence[str] = (), preset: str = "frozen") -> Record:
    """Return the options of all stages by section: a preset's, overridden by single values.

    Args:
        assignments: 'section.name=value'.
        preset: "frozen", models on the states of a frozen encoder; "pretrained", with a pretrained language model as
            generators; or "paper", the models of the paper from scratch.

    Raises:
        OptionError: If a section, an option or a value is wrong; the message names it.
    """
    if preset not in PRESETS:
        raise OptionError(f"there is no preset {preset}; choose one of {', '.join(PRESETS)}")
    sections: dict[str, Options] = {name: kind() for name, kind in SECTIONS.items()} | PRESETS[preset]
    changes: dict[str, dict[str, str]] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        section, dot, key = (part.strip() for part in name.partition("."))
        if not (equals and dot and key):
            raise OptionError(f"--set {assignment}: give section.name=value, for example index.left=3")
        if section not in SECTIONS:
            raise OptionError(f"--set {assignment}: there is no section {section}; choose one of {', '.join(SECTIONS)}")
        changes.setdefault(section, {})[key] = text.strip()
    for section, strings in changes.items():
        try:
            sections[section] = sections[section].updated_from_strings(strings)
        except OptionError as error:
            flags = " ".join(f"--set {section}.{name}={text}" for name, text in strings.items())
            raise OptionError(f"{flags}: {error}") from None
    return sections


Rule = Literal["cosine", "stretch", "base"]


class SurrogateOptions(FinetuneOptions):
    """The options of the surrogate; the defaults are the paper's (section 4.1) where it gives any."""

    structure: Literal["siamese", "cross"] = option(
        "siamese",
        "Structure of the model: one vector for each sentence, or a cross-encoder that reads both "
        "sentences (section 5.6).",
    )
    scale: Rule = option(
        "cosine",
        "Scale of the targets. cosine: the harvested scores themselves. stretch: scores stretched so that 98% of them "
        "fill 0 to 1. base: scores on the line that is nearest to the base's cosines.",
    )
    pooling: Literal["own", "mean", "cls", "mask", "light"] = option(
        "mean",
        "Pooling of the student: the base's own; a mean, [CLS], or the mask of a prompt over its transformer; or, "
        "with word vectors as base (bundled:glove), the light encoder of GCLSR, whose word vectors are trained, too.",
    )
    learns: Literal["scores", "profiles", "cosine-profiles"] = option(
        "scores",
        "Targets of the training. scores: the harvested scores of pairs. profiles: the fit of each sentence to the "
        "contexts of a workspace, by the workspace's discriminator. cosine-profiles: the same, by the cosines of its "
        "encoder.",
    )
    temperature: float = option(
        0.05, "Temperature of the cosines of sentences and contexts, if profiles are learnt.", gt=0
    )
    anchor: float = option(
        0.0,
        "Weight of the distance (1 - cosine) between a sentence's vector and its vector by the base; 0 disables it.",
        ge=0,
    )
    batch_size: int = option(32, "Number of pairs in a forward pass.")
    learning_rate: float = option(1e-4, "Peak learning rate of Adam.")
    warmup_ratio: float = option(0.0, "Fraction of the updates over which the learning rate warms up from 0.")
    max_length: int = option(
        0,
        "Maximum number of tokens of a sentence (of a pair for a cross-encoder), which is truncated to it; 0 uses "
        "the base's limit.",
    )
    length_batches: bool = option(True, "Whether to batch pairs of similar length together.")
    select_by: Literal["auto", "sts-b-dev", "held-out", "last"] = option(
        "held-out",
        "Criterion that selects the checkpoint: the error on the harvest's dev pairs, STS-B dev, or the "
        "last checkpoint.",
    )
    held_out: int = option(10_000, "Maximum number of dev pairs, and of test pairs, that are scored.")

    def _check(self) -> None:
        super()._check()
        if self.structure == "cross" and (self.select_by == "sts-b-dev" or self.anchor or self.scale == "base"):
            raise OptionError(
                "a cross-encoder has no cosines: use preset=cpu, or omit scale=base, anchor and select_by=sts-b-dev"
            )
        if self.learns != "scores":
            if self.structure == "cross" or self.anchor or self.pooling == "light":
                raise OptionError(
                    f"learns={self.learns} trains a transformer with one vector per sentence, without an anchor: use "
                    f"preset=profiles, or omit structure=cross, anchor and pooling=light"
                )
            if self.select_by == "held-out":
                raise OptionError(
                    f"select_by=held-out needs the pairs of a harvest, but learns={self.learns} has none: use "
                    f"preset=profiles, or select_by=last or sts-b-dev"
                )
        if self.anchor and self.pooling == "light":
            raise OptionError("pooling=light uses word vectors, but an anchor needs sentence vectors: set anchor to 0")


PAPER = SurrogateOptions()
CPU = PAPER.updated(scale="stretch", max_length=64, eval_steps=200, warmup_ratio=0.1)
# The rate, decay and length of mask distillation, which also begins with a mask that was never trained.
ANCHORED = CPU.updated(scale="base", anchor=1.0, pooling="mask", learning_rate=4e-4, weight_decay=0.01, max_length=48)
ANCHORED = ANCHORED.updated(select_by="auto", max_steps=200, eval_steps=50)
LIGHT = CPU.updated(pooling="light", batch_size=128, learning_rate=1e-4, select_by="auto", eval_steps=20)
# Batches of mixed lengths: among sentences of one length the contexts would say less about what a sentence means.
PROFILES = CPU.updated(learns="profiles", pooling="cls", length_batches=False, select_by="last", max_steps=100)
SURROGATE = WithPresets(
    "surrogate",
    "Train a Siamese encoder, or a cross-encoder, towards harvested similarity or towards the contexts that a sentence "
    "fits.",
    "Sun et al. 2022, sections 3.4 and 5.6",
    {"anchored": ANCHORED, "light": LIGHT, "profiles": PROFILES, "cpu": CPU, "paper": PAPER},
)
