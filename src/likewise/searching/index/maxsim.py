"""The token vectors of passages, stored in a few bytes each, and their match with a query's tokens (MaxSim).

An encoder computes a vector of each token before it pools them into the vector of the text. The sum over a query's
tokens of the best match among a passage's tokens (Khattab and Zaharia 2020, equation 3) represents single words, which
a single vector does not. Here, the encoder was not trained for this purpose.

Letters of the shapes: Q tokens of a query, T tokens of a passage, S passages, E a token's vector, P its projection,
V the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import numpy as np

from likewise.runs.whole_files import written_whole
from likewise.searching.index.lance_access import unreadable

WIDTH = 192
"""P: with 2 bits each, 48 bytes a token; see benchmarks/notebook/search.md."""
_LEVELS, _REACH = 4, 1.5
"""Of a number, evenly spaced over so many deviations on both sides of its mean."""
_FILE = "tokens.npz"
_IN_A_BYTE = 4
_CODES = np.array([[byte >> shift & 3 for shift in (0, 2, 4, 6)] for byte in range(256)], dtype=np.float32)
_FOUR = _CODES.view(np.complex128).ravel()
"""The same, each four as one number: looked up in a third of the time."""


@dataclass(frozen=True)
class TokenCodec:
    """The form in which the vectors of tokens are stored, and the weights of a query's tokens.

    A vector is projected on the directions in which tokens vary most. These are turned at random, so that each number
    says about as much as another (as in ITQ, Gong and Lazebnik 2011), and each is rounded to 2 bits.

    Attributes:
        directions: (E, P) orthonormal columns; P is a multiple of 4.
        mean: (P,) of the tokens in these directions.
        step: (P,) between two of the 4 levels.
        weights: (V,) of tokens by their ids, or fewer if the last ones do not occur; see `token_weights`.
    """

    directions: np.ndarray
    mean: np.ndarray
    step: np.ndarray
    weights: np.ndarray

    @classmethod
    def fit(cls, texts: Sequence[np.ndarray], width: int = WIDTH) -> TokenCodec:
        """Return the codec for tokens similar to the tokens of some texts, (T, E) each.

        >>> texts = [np.random.default_rng(seed).normal(size=(9, 6)) for seed in range(5)]
        >>> codec = TokenCodec.fit(texts)
        >>> len(codec.pack(texts[0])), codec.unpack(codec.pack(texts[0])).shape
        (18, (9, 8))
        """
        count, size = sum(map(len, texts)), texts[0].shape[1]
        moment, total = np.zeros((size, size)), np.zeros(size)
        for tokens in map(_unit, texts):
            moment += tokens.T @ tokens
            total += tokens.sum(axis=0)
        largest = np.linalg.eigh(moment)[1][:, ::-1][:, :width]
        size = largest.shape[1]
        turned = largest @ np.linalg.qr(np.random.default_rng(0).standard_normal((size, size)))[0]
        directions = np.hstack([turned, np.zeros((len(turned), -size % _IN_A_BYTE))])
        mean = total @ directions / count
        variance = np.einsum("ep,ef,fp->p", directions, moment / count, directions, optimize=True) - mean**2
        step = np.maximum(2 * _REACH * np.sqrt(np.maximum(variance, 0)) / _LEVELS, 1e-9)
        parts = (directions, mean, step, np.ones(1))
        return cls(*(part.astype(np.float32) for part in parts))

    def save(self, folder: Path) -> None:
        """Write the codec to a folder, which is made."""
        folder.mkdir(parents=True, exist_ok=True)
        with written_whole(folder / _FILE) as path, path.open("wb") as file:
            np.savez(file, **{one.name: getattr(self, one.name) for one in fields(self)})

    @classmethod
    def open(cls, folder: Path) -> TokenCodec | None:
        """Return the codec in a folder; None if there is none.

        Raises:
            SearchError: If the file is damaged.
        """
        if not (folder / _FILE).is_file():
            return None
        try:
            with np.load(folder / _FILE) as arrays:
                return cls(*(arrays[one.name] for one in fields(cls)))
        except (OSError, ValueError, KeyError) as error:
            raise unreadable(folder.parent, error) from None

    def projected(self, tokens: np.ndarray) -> np.ndarray:
        """Return the tokens (T, E) of a text, of length 1, in the directions that are stored: (T, P)."""
        projected: np.ndarray = _unit(tokens) @ self.directions
        return projected

    def pack(self, tokens: np.ndarray) -> bytes:
        """Return the tokens (T, E) of a text as T x P / 4 bytes."""
        levels = tokens @ self._steps  # (T, P)
        levels *= 1 / np.maximum(np.sqrt(np.einsum("te,te->t", tokens, tokens)), 1e-9)[:, None]
        levels += self._middle
        np.clip(levels, 0, _LEVELS - 0.5, out=levels)
        fours = levels.astype(np.uint8).view("<u4")  # (T, P / 4): the first of four is the lowest byte
        return (fours | fours >> 6 | fours >> 12 | fours >> 18).astype(np.uint8).tobytes()

    @cached_property
    def _steps(self) -> np.ndarray:
        """The directions (E, P) in steps: `pack` is on the way of every token of an index."""
        return self.directions / self.step

    @cached_property
    def _middle(self) -> np.ndarray:
        """The number (P,) of the level at 0, with its fraction."""
        return _LEVELS // 2 - self.mean / self.step

    def unpack(self, packed: bytes) -> np.ndarray:
        """Return the tokens (T, P) of a text."""
        tokens: np.ndarray = self.mean + self.step * (self._codes(packed) - (_LEVELS - 1) / 2)
        return tokens

    def lengths(self, packed: Sequence[bytes]) -> np.ndarray:
        """Return the number of tokens (S,) of each text."""
        return np.array([_IN_A_BYTE * len(one) // len(self.mean) for one in packed])

    def weights_of(self, ids: np.ndarray) -> np.ndarray:
        """Return the weights (Q,) of tokens by their ids; one that was never seen weighs as much as the rarest."""
        seen = ids < len(self.weights)
        return np.where(seen, self.weights[np.where(seen, ids, 0)], self.weights.max())

    def fits(self, query: np.ndarray, weights: np.ndarray, packed: Sequence[bytes]) -> np.ndarray:
        """Return the fit of texts' tokens to a query's tokens: the weighted mean over q of max over t of q . t.

        Args:
            query: (Q, P) as `projected` gives them.
            weights: (Q,) of them.
            packed: S texts as `pack` gives them.

        Returns:
            (S,); a text without tokens gets the fit of the worst text.
        """
        lengths = self.lengths(packed)
        fits, there = np.zeros(len(packed)), lengths > 0
        if there.any():
            starts = (np.cumsum(lengths) - lengths)[there]
            share = (weights / max(weights.sum(), 1e-9)).astype(np.float32)
            # The product with a token's levels; what the steps and means add to it is the same for all.
            products = (query * self.step) @ self._codes(b"".join(packed)).T  # (Q, all T)
            constant = query @ (self.mean - self.step * (_LEVELS - 1) / 2)  # (Q,)
            fits[there] = share @ (np.maximum.reduceat(products, starts, axis=1) + constant[:, None])
            fits[~there] = fits[there].min()
        return fits

    def _codes(self, packed: bytes) -> np.ndarray:
        """Return the levels (T, P), float32."""
        codes = _FOUR[np.frombuffer(packed, dtype=np.uint8)].view(np.float32)
        return codes.reshape(-1, len(self.mean))


def token_weights(texts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the weights (V,) of tokens by their ids, up to the highest that occurs.

    The root of the idf of BM25, sqrt(ln(1 + (N - n + 1/2) / (n + 1/2))) if n of N texts have the token: names weigh
    more than the words between them, but not so much that they alone decide.

    Args:
        texts: Token ids of N texts, at least one each.
    """
    counts = np.zeros(1 + max((int(ids.max()) for ids in texts if len(ids)), default=0))
    for ids in texts:
        counts[np.unique(ids)] += 1
    idf = np.log1p((len(texts) - counts + 0.5) / (counts + 0.5))
    return np.sqrt(idf).astype(np.float32)


def max_sim(query: np.ndarray, passage: np.ndarray) -> float:
    """Return the fit of a passage's tokens (T, E) to a query's tokens (Q, E), in full precision.

    It is the mean over q of the maximum over t of cos(q, t).

    >>> max_sim(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[3.0, 0.0], [1.0, 0.0]]))
    0.5
    """
    return float((_unit(query) @ _unit(passage).T).max(axis=1).mean())


def _unit(tokens: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = tokens / np.maximum(np.linalg.norm(tokens, axis=1, keepdims=True), 1e-9)
    return scaled
