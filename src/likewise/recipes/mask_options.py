"""What the recipes of the mask prompt share: checks of the template and of the length."""

from __future__ import annotations

from typing import Any

from likewise.encoder.mask_prompt import MaskPrompt
from likewise.runs.options import OptionError


def check_template(template: str) -> None:
    """Refuse what is no template.

    Raises:
        OptionError: it does not hold one X and one [MASK].
    """
    try:
        MaskPrompt.parse(template)
    except ValueError as error:
        raise OptionError(str(error)) from None


def prompt_length(encoder: Any, max_length: int) -> tuple[int, int]:
    """The tokens kept of a sentence in its prompt, and those among them that are the prompt's.

    Args:
        encoder: a mask-prompt encoder.
        max_length: as in the options; 0: as many as the base reads.

    Raises:
        OptionError: the template leaves no room for a sentence.
    """
    most = encoder.max_seq_length or encoder.tokenizer.model_max_length
    length = min(max_length or most, most)
    taken = len(encoder.tokenizer("")["input_ids"])
    if length <= taken:
        raise OptionError(f"max_length {length} leaves no room: the template alone has {taken} tokens")
    return length, taken
