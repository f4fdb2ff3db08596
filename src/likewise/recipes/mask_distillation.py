"""Mask distillation: the mask of a prompt learns the base's own vector. Not from a paper.

The mask of a base that was never trained with prompts says little (39.77 on average over seven STS tasks for
all-MiniLM-L6-v2, whose own, mean-pooled vector has 78.87), and most of a short contrastive run goes into making it
speak. This step costs a third of SNCSE's, wants no negative, and is the first stage of `sncse`. docs/papers.md.
"""

from typing import Any

from likewise.encoder.build import OwnOrMode, build_encoder
from likewise.encoder.encoder_copy import FrozenCopy
from likewise.encoder.mask_prompt import build_mask_prompt_encoder
from likewise.encoder.modules import find_part
from likewise.encoder.opening import is_sentence_encoder
from likewise.losses.distillation import DistillationLoss
from likewise.recipes.collate import Reading, TextCollator, prompt_length
from likewise.recipes.options import PromptOptions
from likewise.recipes.recipe import Recipe
from likewise.runs.options import option


class MaskDistillationOptions(PromptOptions):
    """The options of mask distillation; the defaults are this library's own."""

    learning_rate: float = option(4e-4, "Peak learning rate.")
    warmup_ratio: float = option(0.1, "Share of the updates in which the rate rises from 0.")
    weight_decay: float = option(0.01, "Decoupled weight decay of AdamW.")
    max_length: int = option(48, "Tokens kept of prompt and sentence in training; 0: as many as the base reads.")
    max_steps: int = option(100, "Stop after this many updates; 0: as many as the epochs hold.")
    eval_steps: int = option(50, "Updates between two evaluations; 0: only at the end.")
    sam_rho: float = option(0.0, "Radius of sharpness-aware minimisation, in weight norm; 0: plain AdamW.")


def _twice(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the sentences for the prompt, and for the teacher."""
    sentences = [row["sentence"] for row in rows]
    return {"sentence": sentences, "plain": sentences}


def _encoder(base: str, options: MaskDistillationOptions) -> Any:
    encoder = build_mask_prompt_encoder(base, options.template, head=False)
    pooling: OwnOrMode = "own" if is_sentence_encoder(base) else "mean"
    encoder.append(FrozenCopy(build_encoder(base, pooling=pooling, head=False)))
    return encoder


def _collator(encoder: Any, options: MaskDistillationOptions, seed: int) -> TextCollator:
    length, taken = prompt_length(encoder, options.max_length)
    copy: Any = find_part(encoder, FrozenCopy)
    teacher = Reading.of(copy.encoder)
    # The teacher sees what the prompt leaves room for.
    room = length - taken + len(teacher.tokenizer(teacher.prompt)["input_ids"])
    plain = teacher._replace(length=min(room, teacher.length))
    return TextCollator({"sentence": Reading(encoder.tokenizer, length), "plain": plain}, _twice)


MASK_DISTILLATION = Recipe(
    name="mask-distillation",
    summary="The mask of a prompt learns the base's own vector: a better start for sncse.",
    source="this library; docs/papers.md",
    presets={"cpu": MaskDistillationOptions()},
    build_encoder=_encoder,
    build_collator=_collator,
    build_loss=lambda encoder, options: DistillationLoss(encoder),
)
