import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from likewise.cli.data import write_triplets
from likewise.corpus.documents import Triplet
from likewise.evaluation.pairs import triplet_accuracy
from likewise.evaluation.task import DataError, TaskMissing
from likewise.evaluation.tasks.wiki_sections import TASKS

GENERATED, ORIGINAL = TASKS


def write_articles(folder: Path, count: int) -> Path:
    rows = []
    for i in range(count):
        sections = [
            {
                "heading": heading,
                "paragraphs": [" ".join(f"The {word} of article {i} is number {n}." for n in range(4))],
            }
            for heading, word in (("", "opening"), ("History", "king"), ("Economy", "market"))
        ]
        rows.append(json.dumps({"id": str(i), "title": f"Article {i}", "sections": sections}))
    (folder / "wikipedia").mkdir(parents=True, exist_ok=True)
    (folder / "wikipedia" / "articles.jsonl").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    """A data folder beside 20 articles; the plain file stands in for the compressed one."""
    monkeypatch.setattr("likewise.evaluation.tasks.wiki_sections.ARTICLES", Path("wikipedia") / "articles.jsonl")
    write_articles(tmp_path, 20)
    (tmp_path / "senteval").mkdir()
    return tmp_path / "senteval"


def test_accuracy_beside_a_loop_and_a_tie_is_wrong():
    rng = np.random.default_rng(0)
    a, p, n = rng.normal(size=(3, 100, 4)).astype(np.float32)
    n[:7] = p[:7]
    cosine = euclidean = 0
    for x, y, z in zip(a.astype(float), p.astype(float), n.astype(float), strict=True):
        cosine += x @ y / np.linalg.norm(y) > x @ z / np.linalg.norm(z)
        euclidean += sum((x - y) ** 2) < sum((x - z) ** 2)
    for distance, right in (("cosine", cosine), ("euclidean", euclidean)):
        assert triplet_accuracy(np.concatenate([a, p, n]), distance) == right
        assert triplet_accuracy(np.concatenate([a, a, a]), distance) == 0.0


def test_drawn_from_articles(data, says):
    prepared = replace(GENERATED, size=50).read(data)
    assert len(prepared.sentences) == 150
    anchors, positives, negatives = (prepared.sentences[i : i + 50] for i in (0, 50, 100))

    def vector(text):
        """Kings point one way and markets the other, so that all triplets are right."""
        return [1.0, 0.1] if "king" in text else [0.1, 1.0]

    result = prepared.score(np.array([vector(s) for s in prepared.sentences], dtype=np.float32))
    assert (result.score, result.euclidean, result.n, result.metric) == (100.0, 100.0, 50, "accuracy")
    for one, same, other in zip(anchors, positives, negatives, strict=True):
        assert ("king" in one) == ("king" in same) != ("king" in other)
        assert "opening" not in one + same + other
    with says(DataError):
        GENERATED.read(data)


def test_the_original_file(data, says):
    with says(TaskMissing):
        ORIGINAL.read(data)
    (data.parent / "wikipedia-sections").mkdir()
    write_triplets(data.parent / "wikipedia-sections" / "test.csv", [Triplet("a", "b", "c"), Triplet("d", "e", "f")])
    assert ORIGINAL.read(data).sentences == ["a", "d", "b", "e", "c", "f"]


def test_missing_articles_are_named(tmp_path, says):
    with says(TaskMissing):
        GENERATED.read(tmp_path)


def test_the_real_articles(data_dir):
    """The first of the draw; all 10,000 take some seconds."""
    triplets = replace(GENERATED, size=40).load(data_dir / "senteval")
    assert len({t.article for t in triplets}) >= 10
    assert all(t.section != t.other or t.anchor != t.negative for t in triplets)
    assert triplets == replace(GENERATED, size=60).load(data_dir / "senteval")[:40]
