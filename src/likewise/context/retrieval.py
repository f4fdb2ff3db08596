"""The primary screening: chunks that share words and bigrams with a sentence, by TF-IDF.

Words and bigrams are hashed, so no vocabulary is held and a corpus of any size is read once; weights and hashing are
scikit-learn's: (1 + ln tf) (1 + ln((1 + n) / (1 + df))), every chunk of length 1. What is stored is the transpose, a
row a word: a sentence of 20 words touches 40 rows and no others. Rows that hold nothing are not stored. While it is
made, all counts are in memory: about 30 bytes a word of the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.context.workspace import ContextError

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import HashingVectorizer

_ARRAYS = ("terms", "starts", "chunks", "weights", "idf", "shape")
_AT_ONCE = 5_000


def hashing(bits: int) -> HashingVectorizer:
    """Return what turns texts into counts of their lower-cased words and bigrams, hashed to 2 ** bits numbers."""
    from sklearn.feature_extraction.text import HashingVectorizer

    # (?u)\b\w+\b and not scikit-learn's default, which drops words of one letter.
    return HashingVectorizer(
        ngram_range=(1, 2),
        n_features=1 << bits,
        alternate_sign=False,
        norm=None,
        token_pattern=r"(?u)\b\w+\b",
        dtype=np.float32,
    )


def build_retrieval(folder: Path, texts: Iterable[str], bits: int) -> None:
    """Index texts, chunk i being the i-th, and save the index into a folder.

    Raises:
        ContextError: no text holds a word.
    """
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import TfidfTransformer

    vectorizer = hashing(bits)
    rest = iter(texts)
    parts = []
    while batch := list(islice(rest, _AT_ONCE)):
        parts.append(vectorizer.transform(batch))
    counts = sp.vstack(parts, format="csr") if parts else sp.csr_matrix((0, 1 << bits), dtype=np.float32)
    parts.clear()
    # Only the columns that occur, in the order of their hashes.
    terms, columns = np.unique(counts.indices, return_inverse=True)
    if not len(terms):
        raise ContextError(f"{folder}: no chunk holds a word: nothing can be retrieved")
    counts = sp.csr_matrix((counts.data, columns.astype(np.int32), counts.indptr), shape=(counts.shape[0], len(terms)))
    transformer = TfidfTransformer(sublinear_tf=True)
    rows = transformer.fit_transform(counts).T.tocsr()  # (terms, chunks)
    found = {
        "terms": terms.astype(np.int32),
        "starts": rows.indptr.astype(np.int64),
        "chunks": rows.indices.astype(np.int32),
        "weights": rows.data.astype(np.float32),
        "idf": transformer.idf_.astype(np.float32),
        "shape": np.array([counts.shape[0], bits]),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", found[name])


class Retrieval:
    """The index that `build_retrieval` saved in a folder, mapped from disk.

    Raises:
        ContextError: there is none.
    """

    def __init__(self, folder: Path) -> None:
        self._arrays: dict[str, Any] = {}
        try:
            for name in _ARRAYS:
                self._arrays[name] = np.load(folder / f"{name}.npy", mmap_mode="r")
        except (OSError, ValueError) as error:
            raise ContextError(f"{folder}: no index of chunks ({error}): make it again") from None
        self._n_chunks, bits = (int(number) for number in self._arrays["shape"])
        self._vectorizer = hashing(bits)

    def __len__(self) -> int:
        return self._n_chunks

    def scores(self, sentence: str) -> np.ndarray:
        """Return the cosine of a sentence with every chunk, float32 [chunks]; 0 for all where it shares no term."""
        arrays = self._arrays
        scores = np.zeros(self._n_chunks, np.float32)
        counts = self._vectorizer.transform([sentence])
        counts.sort_indices()
        rows = np.searchsorted(arrays["terms"], counts.indices)
        rows[rows == len(arrays["terms"])] = 0
        known = arrays["terms"][rows] == counts.indices
        rows, tf = rows[known], counts.data[known]
        weights = (1 + np.log(tf)) * arrays["idf"][rows]
        norm = np.linalg.norm(weights)
        for row, weight in zip(rows, weights, strict=True):
            begin, end = arrays["starts"][row], arrays["starts"][row + 1]
            scores[arrays["chunks"][begin:end]] += arrays["weights"][begin:end] * np.float32(weight / norm)
        return scores

    def candidates(self, sentence: str, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Return up to `most` chunks nearest to a sentence that share a term with it, and their cosines.

        The highest cosine comes first, and of equal ones the lower number.
        """
        scores = self.scores(sentence)
        if most < len(scores):
            edge = np.partition(scores, -most)[-most]
            found = np.flatnonzero((scores >= edge) & (scores > 0))
        else:
            found = np.flatnonzero(scores > 0)
        order = np.argsort(-scores[found], kind="stable")[:most]
        return found[order], scores[found][order]
