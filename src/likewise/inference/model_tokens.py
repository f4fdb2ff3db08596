"""The tokenizer of a model as the fast path takes it, and the models that it does not take.

Letters of the shapes: S sentences, D embedding.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import StaticEmbedding, Transformer
from tokenizers import Tokenizer
from torch import Tensor

from likewise.corpus.lines_and_rows import without_surrogates
from likewise.encoder.word_vectors import WordVectors
from likewise.inference.per_model import PerModel
from likewise.inference.tokens import Step, Tokens

_STATIC_BATCH = 1024  # texts of a mean of word vectors: nothing is padded
# Longer than any model reads: tokenizers without a limit say 1e30.
_NO_LIMIT = 1 << 24


class UnfitModel(ValueError):  # noqa: N818 - the reason, not a fault
    """Raised if the fast path does not support a model; sentence-transformers' own path is then used."""


def fits(model: SentenceTransformer, texts: Sequence[object], prompt: str | None) -> Tokens:
    """Return the tokenizer of a model for these texts; raise UnfitModel if the fast path does not take them."""
    if not all(isinstance(text, str) for text in texts):
        raise UnfitModel("not all inputs are texts")
    if prompt and not all(getattr(module, "include_prompt", True) for module in model):
        raise UnfitModel("its pooling leaves the prompt out")
    if has_own_encode(model):
        raise UnfitModel("its encode is its own")
    if any(isinstance(module, Router) for module in model):
        raise UnfitModel("it has a route for queries and one for documents")
    if getattr(model[0], "can_flatten_inputs", False):
        raise UnfitModel("its batches are flattened for flash attention")
    return tokens_of(model)


def has_own_encode(model: SentenceTransformer) -> bool:
    """Return whether a model has an `encode` that is not sentence-transformers'."""
    return "encode" in vars(model) or type(model).encode is not SentenceTransformer.encode


def _made(model: SentenceTransformer) -> Tokens:
    """Return the tokenizer of a model as sentence-transformers' `preprocess`, without padding.

    It is a copy: its padding and truncation are set once, and the model's own is not changed. It is compared with the
    model's `preprocess` on texts that differ in every way that matters.

    Raises:
        UnfitModel: it gives other ids.
    """
    first = model[0]
    if not isinstance(first, (Transformer, WordVectors)):
        raise UnfitModel(f"its first module is {type(first).__name__}")
    if set(getattr(first, "modality_config", {"text": {}})) != {"text"}:
        raise UnfitModel("it reads more than texts")
    own: Any = first.tokenizer
    if not getattr(own, "is_fast", False):
        raise UnfitModel("its tokenizer is not a fast one")
    copy = Tokenizer.from_str(own.backend_tokenizer.to_str())
    copy.encode_special_tokens = bool(own.split_special_tokens)
    copy.no_padding()
    copy.no_truncation()
    limit = int(min(model.max_seq_length or _NO_LIMIT, _NO_LIMIT))
    if limit < _NO_LIMIT:
        copy.enable_truncation(limit, direction=own.truncation_side)
    found = Tokens(copy, int(own.pad_token_id or 0), own.padding_side == "left")
    special = " ".join(str(token) for token in own.all_special_tokens)
    long = "one of many words " * (limit if limit < _NO_LIMIT else 600)
    _compare(found, model, ["", "A.", f"It isn't 3.5, a caf\u00e9; {special} X", long])
    return found


def _compare(tokens: Tokens, model: SentenceTransformer, texts: list[str]) -> None:
    wanted = model.preprocess(texts)
    if (extra := set(wanted) - {"input_ids", "attention_mask", "token_type_ids", "modality"}) or (
        "input_ids" not in wanted or "attention_mask" not in wanted
    ):
        raise UnfitModel(f"its preprocess gives other features ({', '.join(sorted(extra)) or 'no ids'})")
    if "token_type_ids" in wanted and bool(wanted["token_type_ids"].any()):
        raise UnfitModel("its tokens have types")
    ids, mask = tokens.batch(tokens(texts))
    same = wanted["input_ids"].shape == ids.shape and bool((wanted["attention_mask"].numpy() == mask).all())
    if not same or not bool((wanted["input_ids"].numpy() == ids)[mask == 1].all()):
        raise UnfitModel("its preprocess truncates texts in a custom way")


def token_state(model: SentenceTransformer) -> tuple[Any, ...]:
    """Return the state that the tokens depend on, in 5 microseconds: if it changes, tokenize again."""
    tokenizer: Any = getattr(model[0], "tokenizer", None)
    sides = [getattr(tokenizer, name, None) for name in ("truncation_side", "padding_side")]
    backend = getattr(tokenizer, "backend_tokenizer", None)
    steps = [str(getattr(backend, name, None)) for name in ("normalizer", "pre_tokenizer", "post_processor")]
    return id(tokenizer), len(tokenizer) if hasattr(tokenizer, "__len__") else 0, model.max_seq_length, *sides, *steps


tokens_of = PerModel(_made, token_state)
"""The tokenizer of a model, made again if the model's own or its length has changed."""


def is_static(model: SentenceTransformer) -> bool:
    """Return whether a model starts with a mean of word vectors, and its `encode` is sentence-transformers' own."""
    return isinstance(model[0], StaticEmbedding) and not has_own_encode(model)


def static_vectors(
    model: SentenceTransformer, texts: Sequence[str], *, at_most: int | None = None, step: Step
) -> Tensor:
    """Return the vectors (S, D) of texts, 1 or more, by a mean of word vectors; `step` is called with the texts done.

    This is no `TextEncoder`: a batch is a thousand texts in a row of ids, as nothing is padded and no text has a length
    that a batch is made by.
    """
    words: Any = model[0]
    size, found = at_most or _STATIC_BATCH, []
    for start in range(0, len(texts), size):
        piece = [without_surrogates(text) for text in texts[start : start + size]]
        ids = [text.ids for text in words.tokenizer.encode_batch_fast(piece, add_special_tokens=False)]
        lengths = np.array([len(row) for row in ids])
        flat = np.fromiter((i for row in ids for i in row), dtype=np.int64, count=int(lengths.sum()))
        features = {
            "input_ids": torch.from_numpy(flat).to(model.device),
            "offsets": torch.from_numpy(np.cumsum(lengths) - lengths).to(model.device),
        }
        found.append(model(features)["sentence_embedding"])
        step(len(piece))
    return torch.cat(found)
