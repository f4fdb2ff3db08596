"""The tokenizer of a model in the fast path, and the models that the fast path does not support."""

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import Transformer
from tokenizers import Tokenizer

from likewise.encoder.word_vectors import WordVectors
from likewise.inference.engines.engine import has_own_encode
from likewise.inference.tokens import Tokens

# Longer than any model reads: tokenizers without a limit say 1e30.
_NO_LIMIT = 1 << 24
_UNSPACED = "\u6c34\u6cf5\u574f\u4e86\u3002 \u0e1b\u0e31\u0e4a\u0e21\u0e19\u0e49\u0e33\u0e40\u0e2a\u0e35\u0e22"
"""'The pump is broken' in Chinese and in Thai, without blanks between the words."""

Made = TypeVar("Made")


def for_each_model(
    make: Callable[[SentenceTransformer], Made], state: Callable[[SentenceTransformer], object]
) -> Callable[[SentenceTransformer], Made]:
    """Return a function that builds an object once for each model and caches it until the model is deleted.

    Args:
        make: Function from a model to the object, which does not refer to the model.
        state: Function from a model to the state that the object depends on; a new state rebuilds it.
    """
    made: weakref.WeakKeyDictionary[SentenceTransformer, tuple[object, Made]] = weakref.WeakKeyDictionary()

    def of(model: SentenceTransformer) -> Made:
        known, now = made.get(model), state(model)
        if known is None or known[0] != now:
            known = made[model] = now, make(model)
        return known[1]

    return of


class UnfitModel(ValueError):  # noqa: N818 - the reason, not a fault
    """Raised if the fast path does not support a model; sentence-transformers' own path is then used."""


def fits(model: SentenceTransformer, texts: Sequence[object], prompt: str | None) -> Tokens:
    """Return the tokenizer of a model for these texts; raise UnfitModel if the fast path does not support them."""
    if not all(isinstance(text, str) for text in texts):
        raise UnfitModel("not all inputs are texts")
    if prompt and not all(getattr(module, "include_prompt", True) for module in model):
        raise UnfitModel("its pooling excludes the prompt")
    if has_own_encode(model):
        raise UnfitModel("it has a custom encode")
    if any(isinstance(module, Router) for module in model):
        raise UnfitModel("it has a route for queries and one for documents")
    if getattr(model[0], "can_flatten_inputs", False):
        raise UnfitModel("its batches are flattened for flash attention")
    return tokens_of(model)


def _made(model: SentenceTransformer) -> Tokens:
    """Return the tokenizer of a model as sentence-transformers' `preprocess`, without padding.

    It is a copy: its padding and truncation are set once, and the model's own is not changed. It is compared with the
    model's `preprocess` on texts that differ in every way that matters.

    Raises:
        UnfitModel: If it gives other ids.
    """
    first = model[0]
    if not isinstance(first, (Transformer, WordVectors)):
        raise UnfitModel(f"its first module is {type(first).__name__}")
    if set(getattr(first, "modality_config", {"text": {}})) != {"text"}:
        raise UnfitModel("it reads more than texts")
    own: Any = first.tokenizer
    if not getattr(own, "is_fast", False):
        raise UnfitModel("its tokenizer is not a fast tokenizer")
    copy = Tokenizer.from_str(own.backend_tokenizer.to_str())
    copy.encode_special_tokens = bool(own.split_special_tokens)
    copy.no_padding()
    copy.no_truncation()
    limit = int(min(model.max_seq_length or _NO_LIMIT, _NO_LIMIT))
    if limit < _NO_LIMIT:
        copy.enable_truncation(limit, direction=own.truncation_side)
    by_words = isinstance(first, WordVectors)
    tokens = Tokens(copy, int(own.pad_token_id or 0), own.padding_side == "left", by_words)
    special = " ".join(str(token) for token in own.all_special_tokens)
    long = "one of many words " * (limit if limit < _NO_LIMIT else 600)
    _compare(tokens, model, ["", "A.", f"It isn't 3.5, a caf\u00e9; {special} X", _UNSPACED, long])
    return tokens


def _compare(tokens: Tokens, model: SentenceTransformer, texts: list[str]) -> None:
    expected = model.preprocess(texts)
    if (extra := set(expected) - {"input_ids", "attention_mask", "token_type_ids", "modality"}) or (
        "input_ids" not in expected or "attention_mask" not in expected
    ):
        raise UnfitModel(f"its preprocess returns other features ({', '.join(sorted(extra)) or 'no ids'})")
    kind = getattr(getattr(getattr(model[0], "auto_model", None), "config", None), "model_type", "")
    # GPT-2 adds the vector of a type to a token, also of type 0.
    if "token_type_ids" in expected and (bool(expected["token_type_ids"].any()) or "gpt" in kind):
        raise UnfitModel("its tokens have types")
    ids, mask = tokens.batch(tokens(texts))
    same = expected["input_ids"].shape == ids.shape and bool((expected["attention_mask"].numpy() == mask).all())
    if not same or not bool((expected["input_ids"].numpy() == ids)[mask == 1].all()):
        raise UnfitModel("its preprocess truncates texts in a custom way")


def token_state(model: SentenceTransformer) -> tuple[object, ...]:
    """Return the state that the tokens depend on, in 5 microseconds: if it changes, tokenize again."""
    tokenizer: Any = getattr(model[0], "tokenizer", None)
    sides = [getattr(tokenizer, name, None) for name in ("truncation_side", "padding_side")]
    backend = getattr(tokenizer, "backend_tokenizer", None)
    steps = [str(getattr(backend, name, None)) for name in ("normalizer", "pre_tokenizer", "post_processor")]
    return id(tokenizer), len(tokenizer) if hasattr(tokenizer, "__len__") else 0, model.max_seq_length, *sides, *steps


tokens_of = for_each_model(_made, token_state)
"""The tokenizer of a model, rebuilt if the model's own or its length has changed."""
