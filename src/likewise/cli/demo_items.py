"""The items of the demonstration: sentences with a paraphrase, questions with 'not', and how they are scored."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    Encode = Callable[[Sequence[str]], object]
    Question = tuple[str, str, str, str]


@dataclass(frozen=True)
class DemoItems:
    """Sentences with a paraphrase each, and questions with 'not', all written by hand for this demonstration.

    Attributes:
        questions: Negated sentence with three candidates, of which the last means the same. None of their antonyms is
            in the training of the preset `negation`.
        taught: Questions whose antonyms are in the list that the preset `negation` teaches.
    """

    sentences: Sequence[str]
    paraphrases: Sequence[str]
    questions: Sequence[Question]
    taught: Sequence[Question]

    @classmethod
    def read(cls) -> DemoItems:
        """Return the items of the package."""
        from likewise.augment.negation.antonyms import antonyms

        pairs, listed = _table("paraphrases.tsv"), antonyms()
        by_taught: dict[bool, list[Question]] = {False: [], True: []}
        for row in _table("nots.tsv"):
            one, other = row["one"], row["other"]
            is_taught = listed.get(one) == other or listed.get(other) == one
            by_taught[is_taught] += [question(row["sentence"], one, other), question(row["sentence"], other, one)]
        sentences, paraphrases = ([row[name] for row in pairs] for name in ("sentence", "paraphrase"))
        return cls(sentences, paraphrases, by_taught[False], by_taught[True])

    def cosines(self, encode: Encode) -> np.ndarray:
        """Return the cosines of all sentences with all paraphrases, (N, N)."""
        return _units(encode, self.sentences) @ _units(encode, self.paraphrases).T


def answered(encode: Encode, questions: Sequence[Question]) -> float:
    """Return the share of questions whose nearest candidate is the right one, in %."""
    queries, *given = (_units(encode, [row[place] for row in questions]) for place in range(4))
    return 100 * float(((queries * given[2]).sum(axis=1) > _best(queries, given)).mean())


def choice(encode: Encode, row: Sequence[str]) -> int:
    """Return the place of the candidate that is nearest to a question."""
    vectors = _units(encode, row)
    return int((vectors[1:] @ vectors[0]).argmax())


def question(sentence: str, one: str, other: str) -> Question:
    """Return 'not one', and the candidates 'one', 'not other' and 'other'.

    >>> question("The lift is {}.", "full", "empty")
    ('The lift is not full.', 'The lift is full.', 'The lift is not empty.', 'The lift is empty.')
    """
    negated = sentence.replace(" is {}", " is not {}")
    return negated.format(one), sentence.format(one), negated.format(other), sentence.format(other)


def nearest(cosines: np.ndarray) -> float:
    """Return in how many rows the value on the diagonal is the largest, in %."""
    return 100 * float((cosines.argmax(axis=1) == range(len(cosines))).mean())


def apart(cosines: np.ndarray) -> float:
    """Return the mean of the values off the diagonal: of sentences that have nothing to do with each other."""
    count = len(cosines)
    return float((cosines.sum() - cosines.trace()) / (count * (count - 1)))


def _table(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of the package."""
    text = files("likewise.cli").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


def _units(encode: Encode, texts: Sequence[str]) -> np.ndarray:
    """Return the vectors of texts at length 1, (N, D)."""
    import numpy as np

    vectors = np.asarray(encode(texts), dtype=np.float64)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1)[:, None], 1e-12)


def _best(questions: np.ndarray, given: Sequence[np.ndarray]) -> np.ndarray:
    """Return the larger cosine of the two wrong candidates, (N,)."""
    import numpy as np

    return np.maximum(*((questions * candidates).sum(axis=1) for candidates in given[:2]))
