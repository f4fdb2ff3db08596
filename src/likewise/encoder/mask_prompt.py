"""The mask-prompt encoder: the hidden state at the mask of a prompt around the sentence, in stock modules.

SNCSE, equation 1, and PromptBERT before it. The prompt lives in the tokenizer's template, so that truncation counts it
and can never cut the mask; word weights of 1 for the mask token and 0 for all others make mean pooling give exactly
the mask's vector. A folder saved from this loads in plain sentence-transformers, and `encode` wants no prompt.
"""

import re
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, WordWeights
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from likewise.encoder.build import load_transformer
from likewise.encoder.opening import LoadError, check_loadable
from likewise.encoder.training_modules import TrainingHead
from likewise.errors import LikewiseError

TEMPLATE = 'The sentence of " X " means [MASK].'
"""SNCSE, equation 1."""

_PLACE, _MASK = re.compile(r"(?<![A-Za-z0-9])X(?![A-Za-z0-9])"), "[MASK]"


def split_template(template: str) -> tuple[str, str]:
    """Split a template, which holds exactly one X as a separate word and exactly one [MASK], at its X.

    >>> split_template('"X" means [MASK].')
    ('"', '" means [MASK].')
    """
    parts = _PLACE.split(template)
    if len(parts) != 2 or template.count(_MASK) != 1:
        raise LikewiseError(
            f"a template holds one X, where the sentence goes, and one {_MASK}: {template!r} holds "
            f"{len(parts) - 1} and {template.count(_MASK)}"
        )
    return parts[0], parts[1]


def prompt_tokenizer(tokenizer: Any, template: str) -> PreTrainedTokenizerFast:
    """Return a copy of a tokenizer that puts every text into the prompt of a template.

    A mask token (or any special token) in a text is read as plain characters and changes nothing.
    """
    before, after = split_template(template)
    if not getattr(tokenizer, "is_fast", False) or tokenizer.mask_token is None:
        raise LoadError("a mask prompt needs a fast tokenizer with a mask token; take a BERT- or RoBERTa-like base")

    # A copy: the base's own tokenizer must not change.
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_truncation()
    backend.no_padding()
    if getattr(tokenizer, "split_special_tokens", False) and isinstance(backend.pre_tokenizer, ByteLevel):
        backend.pre_tokenizer = ByteLevel(add_prefix_space=False)  # the base has a prompt: undo what is set below

    def pieces(text: str) -> dict[str, Any]:
        # Of the copy: where the base has a prompt already, its own tokenizer reads a mask token as plain characters.
        encoded = backend.encode(text.replace(_MASK, tokenizer.mask_token), add_special_tokens=False)
        return {"ids": encoded.ids, "tokens": encoded.tokens}

    whole = tokenizer("a", return_special_tokens_mask=True)
    special = whole["special_tokens_mask"]
    text_at = special.index(0)
    text_end = len(special) - special[::-1].index(0)
    # Of a prompt that the base has already, only the marks of start and end stay.
    marks = set(tokenizer.all_special_ids) - {tokenizer.mask_token_id, tokenizer.unk_token_id}
    lead = [token for token in whole["input_ids"][:text_at] if token in marks]
    trail = [token for token in whole["input_ids"][text_end:] if token in marks]
    parts = {
        "<lead>": {"ids": lead, "tokens": tokenizer.convert_ids_to_tokens(lead)},
        # The blank before the sentence belongs to the sentence's first word.
        "<before>": pieces(before.rstrip()),
        "<after>": pieces(after),
        "<trail>": {"ids": trail, "tokens": tokenizer.convert_ids_to_tokens(trail)},
    }
    parts = {name: part for name, part in parts.items() if part["ids"]}
    if before.endswith(" ") and isinstance(backend.pre_tokenizer, ByteLevel):
        backend.pre_tokenizer = ByteLevel(add_prefix_space=True)
    order = [name for name in ("<lead>", "<before>", "$A", "<after>", "<trail>") if name == "$A" or name in parts]
    backend.post_processor = TemplateProcessing(
        single=" ".join(f"{name}:0" for name in order),
        special_tokens=[{"id": name, **part} for name, part in parts.items()],
    )
    named = ("bos_token", "eos_token", "cls_token", "sep_token", "pad_token", "unk_token", "mask_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        split_special_tokens=True,
        model_max_length=tokenizer.model_max_length,
        padding_side=tokenizer.padding_side,
        model_input_names=tokenizer.model_input_names,
        **{name: token for name in named if (token := getattr(tokenizer, name)) is not None},
    )


def reads_a_mask(base: str) -> bool:
    """Return whether a base is a mask-prompt encoder: it weighs the tokens, all but one by 0."""
    return any(kind.endswith("WordWeights") for kind in check_loadable(base).modules)


def build_mask_prompt_encoder(
    base: str, template: str = TEMPLATE, head: bool = True, dropout: float | None = None
) -> SentenceTransformer:
    """Return a trainable encoder whose sentence vector is the hidden state at the template's mask.

    Args:
        template: text with one X, where the sentence goes, and one [MASK].
    """
    transformer = load_transformer(base, dropout)
    tokenizer = prompt_tokenizer(transformer.tokenizer, template)
    longest, taken = tokenizer.model_max_length, len(tokenizer("")["input_ids"])
    if taken >= longest:
        raise LoadError(f"--base {base}: it reads {longest} tokens, and the template alone has {taken}")
    transformer.processor = tokenizer
    vocabulary = list(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))))
    weights = WordWeights(vocabulary, {str(tokenizer.mask_token): 1.0}, unknown_word_weight=0.0)
    weights.requires_grad_(False)  # a choice of tokens, nothing to be learnt
    width = transformer.get_embedding_dimension()
    modules = [transformer, weights, Pooling(width, pooling_mode="mean")]
    return SentenceTransformer(modules=[*modules, TrainingHead(width)] if head else modules)
