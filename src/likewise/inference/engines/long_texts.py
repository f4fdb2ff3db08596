"""The vector of a very long text by a mean of word vectors, piece by piece: its memory does not grow with the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

LONG = 1 << 18
"""Characters from which a text is read in pieces: a tokenizer's own objects take a hundred bytes for each."""
_PIECE = 1 << 16
_FARTHEST = 1 << 12
"""Characters within which a piece must have a blank to end before."""


def is_long(model: SentenceTransformer, text: str) -> bool:
    """Return whether a text is read in pieces by a model whose first module is StaticEmbedding."""
    tokenizer: Any = model[0].tokenizer
    return len(text) >= LONG and tokenizer.truncation is None


def vector_of_long(model: SentenceTransformer, text: str) -> Tensor:
    """Return the vector (D,) of a text: the mean of its tokens' vectors, passed through the following modules.

    The mean over all tokens is the mean of the pieces' means, weighted by their numbers of tokens. A piece begins with
    a space, so that its tokens equal the tokens of the whole text.
    """
    import torch

    first: Any = model[0]
    total, tokens = torch.zeros((), dtype=torch.float64), 0
    with torch.inference_mode():
        for piece in pieces_of(text):
            features = {name: value.to(model.device) for name, value in first.preprocess([piece]).items()}
            number = len(features["input_ids"])
            if number:
                total = total + first(features)["sentence_embedding"][0].double().cpu() * number
                tokens += number
        mean = (total / tokens).float() if tokens else first.embedding.weight.new_zeros(first.embedding.embedding_dim)
        features = {"sentence_embedding": mean[None].to(model.device)}
        for module in list(model)[1:]:
            features = module(features)
    vector: Tensor = features["sentence_embedding"][0]
    return vector if model.truncate_dim is None else vector[: model.truncate_dim]


def pieces_of(text: str) -> Iterator[str]:
    """Yield a text in pieces that end before a space, or anywhere if there is no space in thousands of characters.

    >>> [len(piece) for piece in pieces_of("ten chars " * 20_000)]
    [65533, 65530, 65530, 3407]
    """
    start = 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text):
            blanks = (text.rfind(blank, end - _FARTHEST, end) for blank in (" ", "\t", "\u3000"))
            end = next((at for at in blanks if at > start), end)
        yield text[start:end]
        start = end
