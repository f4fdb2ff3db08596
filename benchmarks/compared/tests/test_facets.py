import csv
import random
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from likewise.evaluation import evaluate
from likewise.evaluation.pairs import RatedPairs
from likewise.evaluation.task import DataError, TaskMissing

facets = pytest.importorskip("compared.facets")

SIZES = {"DP": 40, "GC": 30, "GM": 50}


def write_facets(folder: Path, texts: list[str], sizes: dict[str, int] = SIZES) -> Path:
    """Files of the form of the release, which is not at hand: rating in column 0, sentences in 9 and 10.

    The more words the second sentence shares with the first, the higher the rating.
    """
    rng = random.Random(0)
    (folder / "AFS").mkdir(parents=True, exist_ok=True)
    for topic, size in sizes.items():
        with (folder / "AFS" / f"ArgPairs_{topic}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(
                ["regression_label", *(f"column_{i}" for i in range(1, 9)), "sentence_1", "sentence_2", "x"]
            )
            for i in range(size):
                first, other = rng.sample(texts, 2)
                words = first.split()
                kept = round(len(words) * (i % 6) / 5)
                second = " ".join(words[:kept] + other.split()[kept:])
                writer.writerow([i % 6, *(["a, b"] * 8), first, second, "more"])
    return folder


@pytest.fixture
def few(sentences) -> list[str]:
    return sentences[:40]


@pytest.fixture
def data(tmp_path, few) -> Path:
    return write_facets(tmp_path, few)


@pytest.fixture
def pairs(data) -> RatedPairs:
    return facets.read_facets(data)


def test_reads_columns_0_9_and_10_of_the_three_files(pairs, few):
    assert {topic: int((pairs.subset_names == name).sum()) for topic, name in facets.TOPICS.items()} == SIZES
    assert pairs.gold[:7].tolist() == [0, 1, 2, 3, 4, 5, 0]
    assert pairs.first[0] in few
    assert pairs.second[5] == pairs.first[5]


def vectors(texts):
    """A random vector for each text, the same for the same text."""
    return np.array([np.random.default_rng(crc32(t.encode())).normal(size=6) for t in texts], dtype=np.float32)


def cosines(pairs, rows):
    """The cosines of pairs in a loop."""
    found = []
    for i in np.flatnonzero(rows):
        a, b = vectors([pairs.first[i], pairs.second[i]]).astype(float)
        found.append(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    return found


def test_unsupervised_is_the_correlation_of_cosines(data, pairs):
    prepared = facets.FACETS.read(data)
    result = prepared.score(vectors(prepared.sentences))
    known = cosines(pairs, pairs.gold >= 0)
    assert result.pearson == pytest.approx(100 * pearsonr(known, pairs.gold).statistic)
    # Equal sentences tie at a cosine of 1.
    assert result.score == result.spearman == pytest.approx(100 * spearmanr(np.round(known, 9), pairs.gold).statistic)
    assert [part.name for part in result.subsets] == list(facets.TOPICS.values())
    own = pairs.subset_names == facets.TOPICS["GC"]
    assert result.subsets[1].pearson == pytest.approx(100 * pearsonr(cosines(pairs, own), pairs.gold[own]).statistic)


def test_through_the_suite(tiny_model, data):
    report = evaluate(tiny_model, facets.FACETS, data=data)
    assert report["afs"].n == 120
    assert report.missing == ()


def test_quotes_that_went_through_two_encodings(tmp_path, few):
    path = write_facets(tmp_path, few) / "AFS" / "ArgPairs_GC.csv"
    path.write_bytes(b"1,,,,,,,,,it\x89\xdb\xaas a \x89\xdb\xcfright\x89\xdb\x9d,caf\x8e\n" * 10)
    pairs = facets.read_facets(tmp_path)
    assert pairs.first[SIZES["DP"]] == 'it\'s a "right"'
    assert pairs.second[SIZES["DP"]] == "café"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2,3", r"ArgPairs_GM\.csv:52: 3 columns"),
        ("high,,,,,,,,,a,b", r"ArgPairs_GM\.csv:52: 'high' is not a rating"),
        ("7,,,,,,,,,a,b", r"ArgPairs_GM\.csv:52: the rating 7 is outside 0 to 5"),
    ],
)
def test_malformed_rows_are_named(line, message, data):
    with (data / "AFS" / "ArgPairs_GM.csv").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match=message):
        facets.read_facets(data)


def test_missing_files_are_told(data):
    (data / "AFS" / "ArgPairs_DP.csv").unlink()
    with pytest.raises(TaskMissing, match=r"AFS/ArgPairs_DP\.csv"):
        facets.read_facets(data)
