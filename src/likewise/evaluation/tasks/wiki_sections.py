"""Wikipedia sections: sentences of the same section should be nearer (Ein Dor et al. 2018).

`wiki-sections` draws 10,000 triplets from articles and needs plain Wikipedia text; `wiki-sections-test` is the test set
of the paper, which published tables use. Their scores are not comparable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from likewise.corpus.triplets import SEED, Triplet, read_triplets, section_triplets
from likewise.errors import counted
from likewise.evaluation.data import find_file
from likewise.evaluation.pairs import pair_cosines
from likewise.evaluation.task import DataError, Prepared, Task, TaskResult

ARTICLES = Path("wikipedia") / "articles.jsonl.gz"
ORIGINAL = Path("wikipedia-sections") / "test.csv"


@dataclass(frozen=True)
class TripletResult(TaskResult):
    """The accuracy over triplets, times 100.

    Attributes:
        euclidean: the accuracy by the Euclidean distance, times 100; `score` is by the cosine.
    """

    COLUMNS: ClassVar[Mapping[str, str]] = {
        "Task": "title",
        "Accuracy": "score",
        "Accuracy, Euclidean": "euclidean",
        "Triplets": "n",
    }

    euclidean: float


@dataclass(frozen=True)
class WikiSectionsTask(Task):
    """The percentage of triplets whose anchor is nearer to the sentence of its section; a tie is wrong.

    Attributes:
        size: number of triplets drawn from articles, or taken from the paper's file; None takes the whole file.
    """

    size: int | None
    original: bool
    seed: int = SEED

    def load(self, data: Path) -> list[Triplet]:
        """Draw or read the triplets.

        Raises:
            TaskMissing: the file is neither in the data folder nor next to it.
            DataError: there are too few triplets.
            CorpusError: the file is malformed.
        """
        if self.original:
            path = find_file(data, ORIGINAL)
            found = read_triplets(path)[: self.size]
        else:
            from likewise.corpus.documents import read_documents

            assert self.size is not None
            path = find_file(data, ARTICLES)
            found = list(section_triplets(read_documents(path), self.size, self.seed))
        if self.size is not None and len(found) != self.size:
            raise DataError(
                f"{path}: {counted(len(found), 'triplet')}, and {self.title} takes {self.size}. "
                "Put the whole file there."
            )
        return found

    def read(self, data: Path) -> Prepared:
        """Read the triplets for the suite."""
        triplets = self.load(data)

        def score(vectors: np.ndarray) -> TaskResult:
            cosine, euclidean = accuracies(*np.split(vectors, 3))  # each (N, D)
            return TripletResult(self.name, self.title, "accuracy", 100 * cosine, len(triplets), 100 * euclidean)

        columns = ([t.anchor for t in triplets], [t.positive for t in triplets], [t.negative for t in triplets])
        return Prepared([sentence for column in columns for sentence in column], score)


def accuracies(anchors: np.ndarray, positives: np.ndarray, negatives: np.ndarray) -> tuple[float, float]:
    """Return the share of rows whose anchor is nearer to the positive, by the cosine and by the Euclidean distance.

    Args:
        anchors, positives, negatives: (N, D) each. A tie is wrong, so that a collapsed model has 0.

    >>> accuracies(np.array([[1.0, 0.0]]), np.array([[9.0, 1.0]]), np.array([[1.0, 1.0]]))
    (1.0, 0.0)
    """
    cosine = pair_cosines(anchors, positives) > pair_cosines(anchors, negatives)
    near, far = (np.linalg.norm(anchors.astype(np.float64) - other, axis=1) for other in (positives, negatives))
    return float(cosine.mean()), float((near < far).mean())


TASKS: Sequence[WikiSectionsTask] = (
    WikiSectionsTask("wiki-sections", "Wiki sections", 10_000, original=False),
    WikiSectionsTask("wiki-sections-test", "Wiki sections, original test", None, original=True),
)
