"""Word vectors from a sentence encoder, which encodes each word as a separate text.

What a light encoder learns is bounded by its word vectors. Those of a sentence encoder carry its meaning of a word, and
are made once for a vocabulary (the idea of model2vec). Frequent words are made short by smooth inverse frequency (Arora
et al. 2017, "A simple but tough-to-beat baseline"), because an encoder gives 'the' as long a vector as 'volcano'.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
from sentence_transformers import SentenceTransformer
from torch import Tensor

from likewise.encoder.opening import LoadError, check_loadable, open_model
from likewise.encoder.vector_files import WordTable, WordVectorError
from likewise.runs.cache import cache_folder, made_in_cache
from likewise.runs.progress import Progress
from likewise.runs.whole_files import written_whole

_Array = TypeVar("_Array", np.ndarray, Tensor)

PREFIX = "distilled:"
SMOOTHING = 1e-3
"""a of smooth inverse frequency; Arora et al. 2017 give 1e-4 to 1e-3."""
_BLOCK = 4096  # words between two looks at the bar


def is_distilled(source: str) -> bool:
    """Return whether a source of word vectors names an encoder: `distilled:bundled:minilm`."""
    return source.startswith(PREFIX)


def distill(source: str, counts: Counter[str], dimension: int = 0, model: Any = None) -> WordTable:
    """Return the vectors of a corpus's words and of the whole words in the encoder's own vocabulary.

    A word's vector is the encoder's normalised vector of it as a text, less the mean over the corpus's tokens, times
    a / (a + p) with a = 1e-3 and p its share of the corpus's tokens (0 for a word that the corpus does not hold).

    Args:
        source: `distilled:` and what `likewise.load` takes.
        counts: the corpus's words, lower-cased where the encoder does so.
        dimension: principal components kept of each vector; 0 keeps the encoder's size.
        model: the encoder, where `load_encoder` has loaded it already.

    Returns:
        The corpus's words, the most frequent first, then the others.

    Raises:
        WordVectorError: the encoder cannot be loaded, or its vectors have fewer numbers than `dimension`.
    """
    model = model or load_encoder(source)
    own = [word for word in model.tokenizer.get_vocab() if word.isalpha() and len(word) > 1]
    lower = lowers(model)
    frequent = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    words = list(dict.fromkeys([*frequent, *sorted(word.lower() if lower else word for word in own)]))
    vectors = encoded_words(model, words)
    total = sum(counts.values()) or 1
    shares = np.array([counts[word] / total for word in words], dtype=np.float32)
    mean = shares @ vectors / shares.sum() if counts else vectors.mean(axis=0)
    vectors = frequency_weighted(vectors, shares, mean)  # (V, D)
    size = vectors.shape[1]
    if dimension > size:
        raise WordVectorError(f"{source}: its vectors have {size} numbers, and {dimension} are asked for")
    if 0 < dimension < size:
        _, axes = np.linalg.eigh(vectors.T @ vectors)  # ascending
        vectors = vectors @ axes[:, : -dimension - 1 : -1]
    return WordTable(words, vectors.astype(np.float32), source)


def lowers(model: Any) -> bool:
    """Return whether the encoder ignores case."""
    return model.tokenizer("Word").input_ids == model.tokenizer("word").input_ids


def load_encoder(source: str) -> Any:
    """Load the encoder that a source names."""
    try:
        model = open_model(SentenceTransformer, check_loadable(source.removeprefix(PREFIX)))
    except LoadError as error:
        raise WordVectorError(f"{source}: {error}") from None
    if not hasattr(model.tokenizer, "get_vocab"):
        raise WordVectorError(f"{source}: the encoder has no vocabulary of words; give a transformer")
    return model.eval()


def encoded_words(model: Any, words: Sequence[str]) -> np.ndarray:
    """Return the encoder's normalised vectors (V, D) of the words, kept in the cache for the next run."""
    digest = hashlib.blake2b("\n".join(words).encode(), digest_size=12)
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    home = cache_folder() / "distilled"
    path = home / f"{digest.hexdigest()}.npy"
    with suppress(OSError, ValueError, EOFError):  # not there, or damaged: made again
        if len(found := np.load(path)) == len(words):
            return found
    made_in_cache(home)
    blocks = []
    with Progress(quiet=len(words) <= _BLOCK).bar("encoding the words with the base", len(words)) as bar:
        for start in range(0, len(words), _BLOCK):
            block = list(words[start : start + _BLOCK])
            blocks.append(model.encode(block, batch_size=128, normalize_embeddings=True, show_progress_bar=False))
            bar.advance(len(block))
    vectors = np.concatenate(blocks)
    with written_whole(path) as unfinished, unfinished.open("wb") as file:
        np.save(file, vectors)
    return vectors


def frequency_weighted(vectors: _Array, shares: _Array, mean: _Array) -> _Array:
    """Return word vectors without their mean, frequent words scaled down: (v - mean) a / (a + p).

    The weight is that of Arora, Liang and Ma 2017; the mean takes the place of their first principal component, which
    needs the sentences.

    Args:
        shares: (V,) p, each word's share of the corpus's tokens.
        mean: (D,) what is taken off.
    """
    return (vectors - mean) * (SMOOTHING / (SMOOTHING + shares))[:, None]
