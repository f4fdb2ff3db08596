"""Mask distillation: the mask of a prompt learns the base's own vector. Not from a paper.

The mask of a base that was never trained with prompts says little (39.77 on average over seven STS tasks for
all-MiniLM-L6-v2, whose own, mean-pooled vector scores 78.87), and most of a short contrastive run goes into making it
speak. This step costs a third of SNCSE's, wants no negative, and is the first stage of `sncse`. docs/systems/others.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.encoder.location import LoadError
from likewise.encoder.poolings import OwnOrMode
from likewise.recipes import (
    OtherTemplate,
    PromptOptions,
    Reading,
    Recipe,
    TextCollator,
    check_templates,
    distillation_readings,
)

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class MaskDistillationOptions(PromptOptions):
    """The options of mask distillation."""

    other_template: OtherTemplate = ""

    def _check(self) -> None:
        super()._check()
        check_templates(self.template, self.other_template)


def _encoder(base: str, options: MaskDistillationOptions) -> SentenceTransformer:
    from likewise.encoder import FrozenCopy, build_encoder, build_prompt_encoder, is_sentence_encoder

    encoder = build_prompt_encoder(base, options.template, head=False, final_stop=options.final_stop)
    pooling: OwnOrMode = "own" if is_sentence_encoder(base) else "mean"
    own = build_encoder(base, pooling=pooling, head=False)
    of_mask, of_own = encoder.get_embedding_dimension(), own.get_embedding_dimension()
    if of_mask != of_own:
        raise LoadError(
            f"--base {base}: its vectors have {of_own} dimensions, but the mask of a prompt, which learns them, has "
            f"{of_mask}: use a base whose vectors are as long as its token vectors"
        )
    encoder.append(FrozenCopy(own))
    return encoder


def _collator(encoder: SentenceTransformer, options: MaskDistillationOptions, seed: int) -> TextCollator:
    from likewise.encoder import FrozenCopy, find_part

    copy: Any = find_part(encoder, FrozenCopy)
    own, plain = distillation_readings(encoder, copy.encoder, options.max_length)
    others = {"plain": plain}
    if options.other_template:
        others["again"] = Reading.prompted(encoder, options.max_length, options.other_template)
    return TextCollator(
        lambda rows: {name: [row["sentence"] for row in rows] for name in ("sentence", *others)}, own, others
    )


CPU = MaskDistillationOptions(
    learning_rate=4e-4, warmup_ratio=0.1, weight_decay=0.01, max_length=48, max_steps=100, eval_steps=50, sam_rho=0.0
)
MASK_DISTILLATION = Recipe(
    name="mask-distillation",
    summary="The mask of a prompt learns the base's own vector: a better start for sncse.",
    source="this library; docs/systems/others.md",
    presets={"cpu": CPU},
    preset_notes={"cpu": "100 updates of 64 sentences at rate 4e-4, from a fine-tuned encoder."},
    distils=True,
    build_encoder=_encoder,
    build_collator=_collator,
)
