"""The options of the surrogate and its presets, without what trains it, which takes torch."""

from typing import Literal

from likewise.recipes.recipe import WithPresets
from likewise.runs.options import OptionError, option
from likewise.training.objectives import FinetuneOptions

Rule = Literal["cosine", "stretch", "base"]


class SurrogateOptions(FinetuneOptions):
    """The options of the surrogate; the defaults are the paper's (section 4.1) where it gives any."""

    structure: Literal["siamese", "cross"] = option(
        "siamese", "One vector for each sentence, or a cross-encoder that reads both sentences (section 5.6)."
    )
    scale: Rule = option(
        "cosine",
        "Targets: the harvested scores as they are, stretched so that 98% of them fill 0 to 1, or on the line that is "
        "nearest to the base's cosines.",
    )
    pooling: Literal["own", "mean", "cls", "mask", "light"] = option(
        "mean",
        "The student: the base as it is; its transformer with a mean, [CLS], or the mask of a prompt; or, with word "
        "vectors as base (bundled:glove), the light encoder of GCLSR, whose word vectors learn too.",
    )
    learns: Literal["scores", "profiles", "cosine-profiles"] = option(
        "scores",
        "What is learnt. scores: the harvested scores of pairs. profiles: how well each sentence fits the contexts of "
        "a workspace, by the workspace's discriminator. cosine-profiles: the same, by the cosines of its encoder.",
    )
    temperature: float = option(
        0.05, "Temperature of the cosines of sentences and contexts, if profiles are learnt.", gt=0
    )
    anchor: float = option(
        0.0,
        "Weight of the distance (1 - cosine) between a sentence's vector and its vector by the base; 0 leaves it out.",
        ge=0,
    )
    batch_size: int = option(32, "Batch size: pairs in one forward pass.")
    learning_rate: float = option(1e-4, "Peak learning rate of Adam.")
    warmup_ratio: float = option(0.0, "Fraction of the updates over which the learning rate warms up from 0.")
    max_length: int = option(
        0, "Truncate sentences (pairs, for a cross-encoder) to this many tokens; 0 uses the base's limit."
    )
    length_batches: bool = option(True, "Batch pairs of similar length together.")
    select_by: Literal["auto", "sts-b-dev", "held-out", "last"] = option(
        "held-out", "What picks the checkpoint: the error on the harvest's dev pairs, STS-B dev, or the last one."
    )
    held_out: int = option(10_000, "Maximum number of dev and test pairs that are scored.")

    def _check(self) -> None:
        super()._check()
        if self.structure == "cross" and (self.select_by == "sts-b-dev" or self.anchor or self.scale == "base"):
            raise OptionError(
                "a cross-encoder has no cosines: take preset=cpu, or drop scale=base, anchor and select_by=sts-b-dev"
            )
        if self.learns != "scores":
            if self.structure == "cross" or self.anchor or self.pooling == "light":
                raise OptionError(
                    f"learns={self.learns} trains a transformer that gives each sentence one vector, without an "
                    "anchor: take preset=profiles, or leave out structure=cross, anchor and pooling=light"
                )
            if self.select_by == "held-out":
                raise OptionError(
                    f"select_by=held-out needs the pairs of a harvest, and learns={self.learns} has none: take "
                    "preset=profiles, or select_by=last or sts-b-dev"
                )
        if self.anchor and self.pooling == "light":
            raise OptionError(
                "pooling=light takes word vectors, which have no sentence vectors to learn from: set anchor to 0"
            )


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
