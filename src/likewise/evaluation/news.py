"""Fifty news texts with the similarity that people saw in each pair (Lee, Pincombe and Welsh 2005).

A small check that needs no download: gensim ships the texts and the ratings. A text is a short news item, so that it
says more about longer text than the STS sets do, and with 1225 pairs of 50 texts it is coarse.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.evaluation.pairs import pair_cosines, score_pairs
from likewise.evaluation.tasks import Prepared, TaskMissing, TaskResult


@dataclass(frozen=True)
class NewsTask:
    """Pearson correlation of cosines with human ratings (0 to 1) over the 1225 pairs i < j of 50 texts.

    Pearson, as Lee et al. report it.
    """

    name: str = "news"
    title: str = "News"
    size: int = 1225
    needs_data: bool = False

    def prepare(self, data: Path | None) -> Prepared:
        """Read the texts; see `likewise.evaluation.tasks.Task`. The data folder is not used."""
        from likewise.corpus.bundled import news_ratings
        from likewise.corpus.errors import CorpusError

        try:
            texts, ratings = news_ratings()
        except CorpusError as error:
            raise TaskMissing(str(error)) from None
        upper = np.triu_indices(len(texts), k=1)

        def score(vectors: np.ndarray) -> TaskResult:
            cosines = pair_cosines(vectors[upper[0]], vectors[upper[1]])
            return score_pairs(self.name, self.title, cosines, np.asarray(ratings)[upper], metric="pearson")

        return Prepared(texts, score)


TASKS = (NewsTask(),)
