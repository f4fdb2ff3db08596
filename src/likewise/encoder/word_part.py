"""The words of a corpus as a part of the sentence vector: rare words weigh more, and equal words match exactly.

A sentence encoder smooths over the terms of a domain that it has rarely seen; BM25 sees them and nothing else. Here
both are one vector. Letters of the shapes: B sentences, T tokens, D sentence vector, W words, V pieces of the
vocabulary, R rows of a table.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedTokenizerBase

from likewise.encoder.modules import Features, SavedModule

_SHARED = 2048  # rows for the pieces that a corpus does not hold
_WORD_STARTS = ("Ġ", "▁")  # of byte-level BPE and of SentencePiece; WordPiece marks the other pieces, by ##


class WordPart(SavedModule):
    """A module that appends a weighted sum of word-piece vectors to the sentence vector.

    v = [x / |x| ; weight w / |w|], scaled to length 1, where w is the sum of the vectors of the sentence's pieces, each
    times the square root of its count: the cosine of two sentences is the cosine of their vectors x plus weight^2 times
    the cosine of their words, up to a factor. Pieces that the corpus does not hold share some rows of the table, and
    special tokens have the vector zero.

    Args:
        pieces: V.
        rows: R, rows of the table except for the row of zeros.
        dimension: D, of the sentence vector.
        width: W, numbers of the part; the vector v has D + W.
        weight: Weight of the part.
    """

    row: Tensor

    def __init__(self, pieces: int, rows: int, dimension: int, width: int, weight: float = 0.7) -> None:
        super().__init__()
        self.pieces, self.rows, self.dimension, self.width, self.weight = pieces, rows, dimension, width, weight
        self.register_buffer("row", torch.zeros(pieces, dtype=torch.int64))  # (V,) row of the table
        self.table = nn.Parameter(torch.zeros(rows + 1, width))  # row 0 stays zero

    def words(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return w / |w|, (B, W), of ids and mask, (B, T) each."""
        rows = self.row[ids] * mask  # (B, T)
        counts = (rows[:, :, None] == rows[:, None, :]).sum(dim=2, dtype=self.table.dtype)
        return F.normalize((self.table[rows] / counts.sqrt()[:, :, None]).sum(dim=1), dim=1)

    def words_of(self, ids: Tensor, starts: Tensor) -> Tensor:
        """Return the value of `words` for the ids of all sentences in a row and their starts, with a fast gradient.

        The gradient of the table is sparse, as an update reaches a hundredth of its rows.
        """
        rows = self.row[ids]
        sentence = torch.bucketize(torch.arange(len(ids)), starts, right=True)
        _, place, counts = torch.unique(sentence * (self.rows + 1) + rows, return_inverse=True, return_counts=True)
        sums = F.embedding_bag(
            rows,
            self.table,
            starts,
            mode="sum",
            sparse=True,
            padding_idx=0,
            per_sample_weights=counts[place].to(self.table.dtype).rsqrt(),
        )
        return F.normalize(sums, dim=1)

    def combine(self, vectors: Tensor, words: Tensor) -> Tensor:
        """Return the vectors (B, D + W) of sentence vectors (B, D) and of what `words` returned (B, W)."""
        return F.normalize(torch.cat([F.normalize(vectors, dim=1), self.weight * words], dim=1), dim=1)

    def forward(self, features: Features, **kwargs: object) -> Features:
        """Lengthen 'sentence_embedding' (B, D) to (B, D + W), by 'input_ids' and 'attention_mask' (B, T)."""
        words = self.words(features["input_ids"], features["attention_mask"])
        features["sentence_embedding"] = self.combine(features["sentence_embedding"], words)
        return features

    def get_embedding_dimension(self) -> int:
        """Return D + W."""
        return self.dimension + self.width


def fit_word_part(
    ids: Sequence[np.ndarray],
    tokenizer: PreTrainedTokenizerBase,
    embeddings: np.ndarray,
    dimension: int,
    width: int,
    seed: int,
    language: str = "english",
) -> WordPart:
    """Return the part for a corpus: each piece's vector is its idf times the sum of two unit vectors.

    One is random, so that equal words match and others do not; the forms of one word share it, and count as one for the
    idf. The other is the piece's input embedding, centered, so that similar pieces match a little.

    Args:
        ids: Tokens of each passage of the corpus.
        tokenizer: Tokenizer that identifies special pieces and pieces without letters or digits, whose vector is zero.
        embeddings: (V, E) input embeddings of the base.
        dimension: D.
        width: W.
        seed: Random seed of the vectors.
        language: Language of the stemmer; "" treats each form as a separate word.
    """
    count = len(embeddings)
    names = tokenizer.convert_ids_to_tokens(list(range(min(count, len(tokenizer)))))
    silent = np.ones(count, dtype=bool)
    silent[[i for i, name in enumerate(names) if any(char.isalnum() for char in name or "")]] = False
    silent[list(tokenizer.all_special_ids)] = True
    word = np.arange(count)  # (V,) the first piece that is a form of the same word
    word[: len(names)] = _first_forms([name or "" for name in names], language)
    frequency = np.zeros(count, dtype=np.int64)  # (V,) passages that hold the word
    for row in ids:
        frequency[np.unique(word[row])] += 1
    frequency = frequency[word]
    seen = np.flatnonzero((frequency > 0) & ~silent)
    unseen = np.flatnonzero((frequency == 0) & ~silent)
    rng = np.random.default_rng([seed, 7])
    random = _unit(rng.standard_normal((count + _SHARED, width)))
    idf = np.log((1 + len(ids)) / (1 + frequency[seen]))  # 0 for a word of every passage
    weight = frequency[seen] * idf
    own = _unit(embeddings[seen] - weight @ embeddings[seen] / max(weight.sum(), 1e-9))
    longer, shorter = max(own.shape[1], width), min(own.shape[1], width)
    turn = np.linalg.qr(rng.standard_normal((longer, shorter)))[0]  # keeps cosines where width >= E
    own = own @ (turn.T if width >= own.shape[1] else turn)
    part = WordPart(count, len(seen) + _SHARED, dimension, width)
    part.row[torch.from_numpy(seen)] = torch.arange(1, len(seen) + 1)
    part.row[torch.from_numpy(unseen)] = torch.from_numpy(len(seen) + 1 + unseen % _SHARED)
    with torch.no_grad():
        part.table[1 : len(seen) + 1] = torch.from_numpy((random[word[seen]] + own) * idf[:, None])
        # As long as a word of a single passage.
        part.table[len(seen) + 1 :] = torch.from_numpy(2**0.5 * np.log(1 + len(ids)) * random[count:])
    return part


def _first_forms(names: Sequence[str], language: str) -> list[int]:
    """Return for each piece the number of the first piece with the same stem; pieces inside a word stand alone."""
    if not language:
        return list(range(len(names)))
    import snowballstemmer

    stem = snowballstemmer.stemmer(language).stemWord
    marked = any(name.startswith(_WORD_STARTS) for name in names)
    first: dict[str, int] = {}
    numbers = []
    for i, name in enumerate(names):
        starts = name.startswith(_WORD_STARTS) if marked else not name.startswith("##")
        root = stem(name.lstrip("".join(_WORD_STARTS)).lower()) if starts else f" {name}"
        numbers.append(first.setdefault(root, i))
    return numbers


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
