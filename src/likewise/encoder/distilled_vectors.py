"""Word vectors from a sentence encoder, which encodes each word as a separate text.

What a light encoder learns is bounded by its word vectors. Those of a sentence encoder carry its meaning of a word, and
are made once for a vocabulary (the idea of model2vec). Frequent words are made short by smooth inverse frequency (Arora
et al. 2017, "A simple but tough-to-beat baseline"), because an encoder gives 'the' as long a vector as 'volcano'.

Letters of the shapes: V words and sub-words, D numbers, E numbers of the encoder's vectors.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from torch import Tensor

from likewise.encoder.location import LoadError, check_loadable
from likewise.encoder.saved_models import open_model
from likewise.encoder.vector_files import WordTable, WordVectorError, read_word_vectors
from likewise.runs.cache import cached
from likewise.runs.progress import Progress

_Array = TypeVar("_Array", np.ndarray, Tensor)

PREFIX = "distilled:"
SMOOTHING = 1e-3
"""a of smooth inverse frequency; Arora et al. 2017 give 1e-4 to 1e-3."""
_WORD_VECTORS = "vectors.npy"
_BLOCK = 4096  # words between two looks at the bar
_AT_A_TIME = 10_000


def is_distilled(source: str) -> bool:
    """Return whether a source of word vectors names an encoder: `distilled:bundled:minilm`."""
    return source.startswith(PREFIX)


def load_encoder(source: str) -> tuple[Any, bool]:
    """Load the encoder that a source names; return it, and whether it ignores case."""
    try:
        model = open_model(SentenceTransformer, check_loadable(source.removeprefix(PREFIX)))
    except LoadError as error:
        raise WordVectorError(f"{source}: {error}") from None
    if not hasattr(model.tokenizer, "get_vocab"):
        raise WordVectorError(f"{source}: the encoder has no vocabulary of words; give a transformer")
    return model.eval(), model.tokenizer("Word").input_ids == model.tokenizer("word").input_ids


def count_words(tokenizer: Tokenizer, sentences: Iterable[str]) -> Counter[str]:
    """Count the words of sentences as a tokenizer splits them, before it cuts them into sub-words."""
    normalize = tokenizer.normalizer.normalize_str if tokenizer.normalizer else str
    cut = tokenizer.pre_tokenizer.pre_tokenize_str
    return Counter(word for sentence in sentences for word, _ in cut(normalize(sentence)))


def distill(source: str, counts: Counter[str], dimension: int, model: Any, lower: bool) -> WordTable:
    """Return the vectors of a corpus's words and of the whole words in an encoder's own vocabulary.

    A word's vector is the encoder's normalised vector of it as a text, less the mean over the corpus's tokens, times
    a / (a + p) with a = 1e-3 and p its share of the corpus's tokens (0 for a word that the corpus does not hold).

    Args:
        source: the name of the table.
        counts: the corpus's words, lower-cased where the encoder does so.
        dimension: D, principal components kept of each vector; 0 keeps the encoder's size.
        model, lower: what `load_encoder` returns.

    Returns:
        The corpus's words, the most frequent first, then the others.
    """
    own = [word for word in model.tokenizer.get_vocab() if word.isalpha() and len(word) > 1]
    words = list(dict.fromkeys([*_most_frequent(counts), *sorted(word.lower() if lower else word for word in own)]))
    vectors = encoded_words(model, words)
    total = sum(counts.values()) or 1
    shares = np.array([counts[word] / total for word in words], dtype=np.float32)
    mean = shares @ vectors / shares.sum() if counts else vectors.mean(axis=0)
    vectors = frequency_weighted(vectors, shares, mean)  # (V, E)
    if dimension and dimension != vectors.shape[1]:
        vectors = vectors @ _principal_axes(source, vectors.T @ vectors, dimension)
    return WordTable(words, vectors, source)


def build_static_words(
    source: str, sentences: Sequence[str], words: int, dimension: int = 0, vectors_from: str = ""
) -> tuple[StaticEmbedding, Tensor]:
    """Return the mean of word vectors, before any training, and the axes of its space in the encoder's, (E, D).

    The encoder's sub-words are joined by the frequent words of a corpus, so that a frequent word has a vector of its
    own and any other word those of its pieces (the vocabulary of model2vec's distillation). A vector is the encoder's
    normalised vector of the word or sub-word as a text, less the mean over the corpus's tokens, times a / (a + p) (see
    `frequency_weighted`). With `vectors_from` it is that file's instead, and a word that the file does not hold starts
    at random; the axes are then those of the encoder's own space, (E, E).

    Args:
        words: the corpus's most frequent words to add; those that a WordPiece tokenizer has already do not count.
            The vocabulary of any other tokenizer stays as it is.
        dimension: D, the principal components to keep; 0 keeps the encoder's size.
        vectors_from: word vectors to start from: what `read_word_vectors` takes.
    """
    model, _ = load_encoder(source)
    tokenizer = with_frequent_words(model.tokenizer.backend_tokenizer, sentences, words)
    vocabulary = tokenizer.get_vocab()
    texts = [_text(model, piece) for piece in sorted(vocabulary, key=vocabulary.__getitem__)]
    size = int(model.get_embedding_dimension())
    vectors = _looked_up(vectors_from, texts, size**-0.5) if vectors_from else encoded_words(model, texts)
    counts = np.zeros(len(vectors), dtype=np.int64)
    for start in range(0, len(sentences), _AT_A_TIME):
        found = tokenizer.encode_batch_fast(list(sentences[start : start + _AT_A_TIME]), add_special_tokens=False)
        counts += np.bincount(np.concatenate([text.ids for text in found]).astype(np.int64), minlength=len(counts))
    shares = (counts / max(1, counts.sum())).astype(np.float32)
    vectors = frequency_weighted(vectors, shares, shares @ vectors)
    axes = np.eye(size, dtype=np.float32)
    if dimension and dimension != size:
        axes = _principal_axes(source, vectors.T @ (shares[:, None] * vectors), dimension)
        vectors = vectors @ axes
    module = StaticEmbedding(tokenizer, embedding_weights=torch.from_numpy(vectors), base_model=source)
    return module, torch.from_numpy(np.ascontiguousarray(axes))


def _looked_up(source: str, texts: Sequence[str], spread: float) -> np.ndarray:
    """Return the vectors of a file for texts, (V, D); random ones of the same size for those that it does not hold.

    Their numbers get the spread that an encoder's have, as a step of Adam moves each number by the same.
    """
    table = read_word_vectors(source)
    rows = np.array([table.row_of.get(text, -1) for text in texts])
    known = np.asarray(table.vectors[rows[rows >= 0]], dtype=np.float32)
    if not len(known):
        raise WordVectorError(f"{source}: it holds none of the corpus's words; give word vectors of the same language")
    chance = np.random.default_rng(1).standard_normal((len(texts), known.shape[1]))
    found = known.mean(axis=0) + known.std(axis=0) * chance
    found[rows >= 0] = known
    scaled: np.ndarray = (found * (spread / known.std())).astype(np.float32)
    return scaled


def _text(model: Any, piece: str) -> str:
    """Return the characters that a sub-word stands for: 'ing' for '##ing', 'the' for the 'Ġthe' of a byte-level BPE."""
    if isinstance(model.tokenizer.backend_tokenizer.model, WordPiece):
        return piece.removeprefix("##") or piece
    return model.tokenizer.convert_tokens_to_string([piece]).strip() or piece


def with_frequent_words(tokenizer: Tokenizer, sentences: Sequence[str], words: int) -> Tokenizer:
    """Return a WordPiece tokenizer with the most frequent words of a corpus as further entries, without special tokens.

    Args:
        words: how many to add. A word of one occurrence is never added.
    """
    parts: dict[str, Any] = json.loads(tokenizer.to_str())
    parts |= {"padding": None, "truncation": None, "post_processor": None, "added_tokens": []}
    if isinstance(tokenizer.model, WordPiece):
        vocabulary, counts = parts["model"]["vocab"], count_words(tokenizer, sentences if words else ())
        fresh = [word for word in _most_frequent(counts) if counts[word] > 1 and word not in vocabulary]
        vocabulary |= {word: len(vocabulary) + i for i, word in enumerate(fresh[:words])}
    return Tokenizer.from_str(json.dumps(parts))


def _most_frequent(counts: Counter[str]) -> list[str]:
    """Return all words, the most frequent first, and equally frequent ones by the alphabet."""
    return sorted(counts, key=lambda word: (-counts[word], word))


def _principal_axes(source: str, products: np.ndarray, dimension: int) -> np.ndarray:
    """Return the first principal axes (E, D) of vectors, by the products of their numbers (E, E)."""
    if dimension > len(products):
        raise WordVectorError(f"{source}: its vectors have {len(products)} dimensions, not {dimension}: ask for fewer")
    _, columns = np.linalg.eigh(products)  # ascending
    return columns[:, : -dimension - 1 : -1].astype(np.float32)


def encoded_words(model: Any, words: Sequence[str]) -> np.ndarray:
    """Return the encoder's normalised vectors (V, D) of the words, kept in the cache for the next run.

    They are sentence-transformers' own, without a `TextEncoder`: words of a few tokens gain nothing by its batches, and
    this room is below the one that encodes.
    """
    digest = hashlib.blake2b("\n".join(words).encode(), digest_size=12)
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())

    def make(folder: Path) -> None:
        blocks = []
        with Progress(quiet=len(words) <= _BLOCK).bar("encoding the words with the base", len(words)) as bar:
            for start in range(0, len(words), _BLOCK):
                block = list(words[start : start + _BLOCK])
                blocks.append(model.encode(block, batch_size=128, normalize_embeddings=True, show_progress_bar=False))
                bar.advance(len(block))
        np.save(folder / _WORD_VECTORS, np.concatenate(blocks))

    found: np.ndarray = np.load(cached("distilled", digest.hexdigest(), make) / _WORD_VECTORS)
    return found


def frequency_weighted(vectors: _Array, shares: _Array, mean: _Array) -> _Array:
    """Return word vectors without their mean, frequent words scaled down: (v - mean) a / (a + p).

    The weight is that of Arora, Liang and Ma 2017; the mean takes the place of their first principal component, which
    needs the sentences.

    Args:
        shares: (V,) p, each word's share of the corpus's tokens.
        mean: (D,) what is taken off.
    """
    return (vectors - mean) * (SMOOTHING / (SMOOTHING + shares))[:, None]
