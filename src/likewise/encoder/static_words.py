"""Static words: a text is the mean of the vectors of its words and sub-words, made from a sentence encoder's own.

The encoder's sub-words are joined by the frequent words of a corpus, so that a frequent word has a vector of its own
and any other word those of its pieces (the vocabulary of model2vec's distillation).
Letters of the shapes: V words and sub-words, D numbers.
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordPiece

from likewise.encoder.distilled_vectors import encoded_words, frequency_weighted, load_encoder
from likewise.encoder.vector_files import WordVectorError, read_word_vectors

_CONTINUED = "##"
_AT_A_TIME = 10_000


def build_static_words(
    source: str, sentences: Sequence[str], words: int, dimension: int = 0, vectors_from: str = ""
) -> tuple[StaticEmbedding, torch.Tensor]:
    """Return the mean of word vectors, before any training, and the axes of its space in the encoder's, (E, D).

    A vector is the encoder's normalised vector of the word or sub-word as a text, less the mean over the corpus's
    tokens, times a / (a + p) (see `frequency_weighted`). With `vectors_from` it is that file's instead, and a word that
    the file does not hold starts at random; the axes are then those of the encoder's own space, (E, E).

    Args:
        words: the corpus's most frequent words to add; those that a WordPiece tokenizer has already do not count.
            The vocabulary of any other tokenizer stays as it is.
        dimension: D, the principal components to keep; 0 keeps the encoder's size.
        vectors_from: word vectors to start from: what `read_word_vectors` takes.
    """
    model = load_encoder(source)
    tokenizer = with_frequent_words(model.tokenizer.backend_tokenizer, sentences, words)
    vocabulary = tokenizer.get_vocab()
    texts = [_text(model, piece) for piece in sorted(vocabulary, key=vocabulary.__getitem__)]
    if vectors_from:
        size = int(model.get_embedding_dimension())
        vectors = _looked_up(vectors_from, texts, size**-0.5)
    else:
        vectors = encoded_words(model, texts)
        size = vectors.shape[1]
    counts = np.zeros(len(vectors), dtype=np.int64)
    for start in range(0, len(sentences), _AT_A_TIME):
        found = tokenizer.encode_batch_fast(list(sentences[start : start + _AT_A_TIME]), add_special_tokens=False)
        counts += np.bincount(np.concatenate([text.ids for text in found]).astype(np.int64), minlength=len(counts))
    shares = (counts / max(1, counts.sum())).astype(np.float32)
    vectors = frequency_weighted(vectors, shares, shares @ vectors)
    if dimension > size:
        raise WordVectorError(f"{source}: its vectors have {size} numbers, and {dimension} are asked for")
    axes = np.eye(size, dtype=np.float32)
    if 0 < dimension < size:
        _, columns = np.linalg.eigh(vectors.T @ (shares[:, None] * vectors))  # ascending
        axes = columns[:, : -dimension - 1 : -1].astype(np.float32)  # (E, D)
        vectors = vectors @ axes
    module = StaticEmbedding(tokenizer, embedding_weights=torch.from_numpy(vectors), base_model=source)
    return module, torch.from_numpy(np.ascontiguousarray(axes))


def _looked_up(source: str, texts: Sequence[str], spread: float) -> np.ndarray:
    """Return the vectors of a file for texts, (V, D); random ones of the same size for those that it does not hold.

    Their numbers get the spread that an encoder's have, as a step of Adam moves each number by the same.
    """
    table = read_word_vectors(source)
    place = {word: i for i, word in reversed(list(enumerate(table.words)))}
    rows = np.array([place.get(text, -1) for text in texts])
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
    if _is_word_piece(model.tokenizer.backend_tokenizer):
        return piece.removeprefix(_CONTINUED) or piece
    return model.tokenizer.convert_tokens_to_string([piece]).strip() or piece


def _is_word_piece(tokenizer: Tokenizer) -> bool:
    return isinstance(tokenizer.model, WordPiece)


def with_frequent_words(tokenizer: Tokenizer, sentences: Sequence[str], words: int) -> Tokenizer:
    """Return a WordPiece tokenizer with the most frequent words of a corpus as further entries, without special tokens.

    Args:
        words: how many to add. A word of one occurrence is never added.
    """
    parts: dict[str, Any] = json.loads(tokenizer.to_str())
    parts |= {"padding": None, "truncation": None, "post_processor": None, "added_tokens": []}
    if _is_word_piece(tokenizer) and words:
        vocabulary = parts["model"]["vocab"]
        normalize, cut = tokenizer.normalizer, tokenizer.pre_tokenizer
        counts: Counter[str] = Counter()
        for sentence in sentences:
            text = normalize.normalize_str(sentence) if normalize else sentence
            counts.update(word for word, _ in cut.pre_tokenize_str(text))
        fresh = ((word, count) for word, count in counts.items() if count > 1 and word not in vocabulary)
        for word, _ in sorted(fresh, key=lambda item: (-item[1], item[0]))[:words]:
            vocabulary[word] = len(vocabulary)
    return Tokenizer.from_str(json.dumps(parts))
