"""Fifty news texts with human ratings of the similarity of each pair (Lee, Pincombe and Welsh 2005).

A small check that needs no download: gensim ships the texts and the ratings. With 1225 pairs of only 50 short news
items it is coarse, but its texts are longer than those of the STS sets.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.evaluation.pairs import pair_cosines, score_pairs
from likewise.evaluation.task import Prepared, Task, TaskMissing, TaskResult


@dataclass(frozen=True)
class NewsTask(Task):
    """The Pearson correlation of cosines with ratings (0 to 1) over all pairs of texts, as in Lee et al."""

    name: str = "news"
    title: str = "News"
    needs_data: bool = False

    def read(self, data: Path) -> Prepared:
        """Read the texts that gensim ships."""
        from likewise.corpus.bundled import news_ratings
        from likewise.corpus.corpus_options import CorpusError

        try:
            texts, ratings = news_ratings()
        except CorpusError as error:
            raise TaskMissing(str(error)) from None
        upper = np.triu_indices(len(texts), k=1)

        def score(vectors: np.ndarray) -> TaskResult:
            cosines = pair_cosines(vectors[upper[0]], vectors[upper[1]])
            return score_pairs(self, cosines, np.asarray(ratings)[upper], metric="pearson")

        return Prepared(texts, score)


TASKS = (NewsTask(),)
