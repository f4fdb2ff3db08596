"""Wikipedia sections: sentences of the same section should be nearer (Ein Dor et al. 2018).

`wiki-sections` draws 10,000 triplets from articles and needs plain Wikipedia text; `wiki-sections-test` is the test set
of the paper, which published tables use. Their scores are not comparable.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.corpus.documents import SEED, Triplet, read_triplets, section_triplets
from likewise.evaluation.data_folder import find_file
from likewise.evaluation.pairs import triplet_accuracy
from likewise.evaluation.task import Prepared, Task, TaskResult

ARTICLES = Path("wikipedia") / "articles.jsonl.gz"
ORIGINAL = Path("wikipedia-sections") / "test.csv"


@dataclass(frozen=True)
class TripletResult(TaskResult):
    """The accuracy over triplets, times 100.

    Attributes:
        euclidean: Accuracy by the Euclidean distance, times 100; `score` is by the cosine.
    """

    COLUMNS = (("Task", "title"), ("Accuracy", "score"), ("Accuracy, Euclidean", "euclidean"), ("Triplets", "n"))

    euclidean: float


@dataclass(frozen=True)
class WikiSectionsTask(Task):
    """The percentage of triplets whose anchor is nearer to the sentence of its section; a tie is wrong.

    Attributes:
        size: Number of triplets drawn from articles, or taken from the paper's file; None takes the whole file.
    """

    size: int | None
    original: bool
    seed: int = SEED

    def load(self, data: Path) -> list[Triplet]:
        """Draw or read the triplets; raises as `read` does, and CorpusError if the file is malformed."""
        if self.original:
            path = find_file(data, ORIGINAL)
            triplets = read_triplets(path)[: self.size]
        else:
            from likewise.corpus.documents import read_documents

            assert self.size is not None
            path = find_file(data, ARTICLES)
            triplets = list(section_triplets(read_documents(path), self.size, self.seed))
        self.check_count(path, len(triplets), "triplet", self.size)
        return triplets

    def read(self, data: Path) -> Prepared:
        """Read the triplets for the suite."""
        triplets = self.load(data)

        def score(vectors: np.ndarray) -> TaskResult:
            cosine, euclidean = (triplet_accuracy(vectors, distance) for distance in ("cosine", "euclidean"))
            return TripletResult(self.name, self.title, "accuracy", cosine, len(triplets), euclidean)

        columns = zip(*((t.anchor, t.positive, t.negative) for t in triplets), strict=True)
        return Prepared([sentence for column in columns for sentence in column], score)


TASKS: Sequence[WikiSectionsTask] = (
    WikiSectionsTask("wiki-sections", "Wiki sections", 10_000, original=False),
    WikiSectionsTask("wiki-sections-test", "Wiki sections, original test", None, original=True),
)
