"""The pairs of a harvest: which sentences of a corpus are paired, shard by shard.

Each pair, near, far or unrelated, is in exactly one shard. The sentences of the pool are shuffled by the seed, and each
shard takes its anchors from this order. An anchor is paired

- with the sentences that stand at given ranks (1, 2, 4, ... by default) among those most like it by the frozen encoder,
  or by the word pieces they share: from paraphrases, where there are any, to the same topic;
- with other anchors of its shard drawn at random, which are unrelated as a rule.

The pairs of a shard thus depend only on the pool, the options and its number: any machine can compute any shard, also
after a crash. A partner by rank comes after its anchor in the order, and random partners share a shard, so no pair
occurs twice.

Letters: N sentences of the pool, A anchors of a shard.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_matrix, issparse

from likewise.context.stage_options import HarvestOptions
from likewise.context.workspace import ContextError
from likewise.corpus.words import word_count

SentencePair = tuple[str, str]


class PairSource:
    """The pairs of a harvest, shard by shard.

    Args:
        sentences: Sentences of the corpus; repeated, too short and too long sentences are excluded.
        vectors: (S, any) of the sentences, unit length: of the frozen encoder, or `tfidf`.
    """

    def __init__(self, sentences: Sequence[str], options: HarvestOptions, vectors: csr_matrix) -> None:
        self.options = options
        first: dict[str, int] = {}
        for row, sentence in enumerate(sentences):
            if options.min_words <= word_count(sentence) <= options.max_words:
                first.setdefault(sentence, row)
        self.pool = list(first)
        self.vectors = vectors[list(first.values())]
        if len(self.pool) < options.anchors + max(options.ranks):
            raise ContextError(
                f"{len(self.pool):,} sentences of {options.min_words} to {options.max_words} words are too few for a "
                f"harvest with anchors={options.anchors} and ranks up to {max(options.ranks)}: give more documents"
            )
        self.order = np.random.default_rng([options.seed, 0]).permutation(len(self.pool))
        self.place = np.empty(len(self.pool), dtype=np.int64)
        self.place[self.order] = np.arange(len(self.pool))

    @property
    def shards(self) -> int:
        """The number of shards."""
        anchors = math.ceil(self.options.pairs / (len(self.options.ranks) + self.options.random))
        # The last sentences in the order would have no partner behind them.
        anchors = min(anchors, len(self.pool) - max(self.options.ranks))
        return max(1, anchors // self.options.anchors)

    def cosines(self, rows: np.ndarray) -> np.ndarray:
        """Return the cosines of some rows of the pool with all of them: (A, N)."""
        cosines = self.vectors[rows] @ self.vectors.T
        return cosines.toarray() if issparse(cosines) else cosines

    def ranked(self, row: int, cosines: np.ndarray, allowed: np.ndarray, most: int) -> np.ndarray:
        """Return up to `most` allowed rows, most similar first, by the cosines (N,) of a row; none of a cosine of 0."""
        cosines = np.where(allowed, cosines, -np.inf)
        cosines[row] = -np.inf
        k = min(most, len(cosines))
        best = np.argpartition(-cosines, k - 1)[:k]
        best = best[np.lexsort((best, -cosines[best]))]
        return best[np.isfinite(cosines[best]) & (cosines[best] != 0)]

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the pairs, equal for the same pairs."""
        digest = blake2b(repr(self.options).encode(), digest_size=16)
        for sentence in self.pool:
            digest.update(sentence.encode() + b"\n")
        return digest.hexdigest()

    def shard(self, number: int) -> pa.Table:
        """Return the pairs of a shard, none twice: sentence1, sentence2, kind ("random", or as "rank 8") and split."""
        begin = number * self.options.anchors
        anchors = self.order[begin : begin + self.options.anchors]
        kinds: dict[tuple[int, int], str] = {}
        for anchor, cosines in zip(anchors.tolist(), self.cosines(anchors), strict=True):
            ranked = self.ranked(anchor, cosines, self.place > self.place[anchor], max(self.options.ranks)).tolist()
            for rank in self.options.ranks:
                if rank <= len(ranked):
                    kinds[anchor, ranked[rank - 1]] = f"rank {rank}"
        free = [pair for pair in itertools.combinations(anchors.tolist(), 2) if pair not in kinds]
        rng = np.random.default_rng([self.options.seed, 1, number])
        for k in rng.permutation(len(free))[: len(anchors) * self.options.random]:
            kinds[free[k]] = "random"
        first, second = ([self.pool[pair[side]] for pair in kinds] for side in (0, 1))
        splits = list(map(self.split, first, second))
        return pa.table({"sentence1": first, "sentence2": second, "kind": list(kinds.values()), "split": splits})

    def split(self, first: str, second: str) -> str:
        """Return the split of a pair, which depends on its hash alone."""
        text = "\n".join((str(self.options.seed), *sorted((first, second))))
        share = int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / 2**64
        return "dev" if share < self.options.held_out else "test" if share < 2 * self.options.held_out else "train"


def tfidf(ids: np.ndarray, starts: np.ndarray, idf: np.ndarray) -> csr_matrix:
    """Return sparse vectors of unit length of sentences, (1 + ln tf) idf of word pieces: (S, V).

    Args:
        ids, starts: Word pieces of sentence i are ids[starts[i] : starts[i + 1]].
        idf: (V,), by id.
    """
    from sklearn.preprocessing import normalize

    counts = csr_matrix((np.ones(len(ids), np.float32), ids, starts), (len(starts) - 1, len(idf)))
    counts.sum_duplicates()
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    return normalize(counts)
