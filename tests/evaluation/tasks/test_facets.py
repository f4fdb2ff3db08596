import csv
import random
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.linear_model import Ridge

from likewise.evaluation import evaluate
from likewise.evaluation.pairs import RatedPairs
from likewise.evaluation.probe import Fold
from likewise.evaluation.task import DataError, TaskMissing
from likewise.evaluation.tasks.facets import (
    TASKS,
    TOPICS,
    facet_folds,
    read_facets,
    regress,
)

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
def data(tmp_path, few) -> Path:
    return write_facets(tmp_path, few)


@pytest.fixture
def pairs(data) -> RatedPairs:
    return read_facets(data)


def test_reads_columns_0_9_and_10_of_the_three_files(pairs, few):
    assert {topic: int((pairs.subset_names == name).sum()) for topic, name in TOPICS.items()} == SIZES
    assert pairs.gold[:7].tolist() == [0, 1, 2, 3, 4, 5, 0]
    assert pairs.first[0] in few
    assert pairs.second[5] == pairs.first[5]


def test_folds_share_topics_and_topics_leave_one_out(pairs):
    cut = facet_folds(pairs, "folds")
    assert sorted(np.concatenate([split.test for split in cut])) == list(range(120))
    for split in cut:
        assert not set(split.train) & set(split.test)
        assert {t: int((pairs.subset_names[split.test] == name).sum()) for t, name in TOPICS.items()} == {
            "DP": 4,
            "GC": 3,
            "GM": 5,
        }
    across = facet_folds(pairs, "topics")
    assert [split.name for split in across] == ["death penalty", "gun control", "gay marriage"]
    for split, name in zip(across, TOPICS.values(), strict=True):
        assert set(pairs.subset_names[split.test]) == {name}
        assert len(set(pairs.subset_names[split.train])) == 2
        assert len(split.train) + len(split.test) == 120


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
    prepared = TASKS[0].prepare(data)
    result = prepared.score(vectors(prepared.sentences))
    known = cosines(pairs, pairs.gold >= 0)
    assert result.pearson == pytest.approx(100 * pearsonr(known, pairs.gold).statistic)
    # Equal sentences tie at a cosine of 1, up to the last bit.
    assert result.score == result.spearman == pytest.approx(100 * spearmanr(known, pairs.gold).statistic, abs=0.02)
    assert [part.name for part in result.subsets] == list(TOPICS.values())
    own = pairs.subset_names == TOPICS["GC"]
    assert result.subsets[1].pearson == pytest.approx(100 * pearsonr(cosines(pairs, own), pairs.gold[own]).statistic)


def test_all_three_through_the_suite(tiny_model, data, pairs):
    report = evaluate(tiny_model, "afs,afs-folds,afs-topics", data=data)
    assert [result.n for result in report.results] == [120] * 3
    assert report.missing == ()
    assert "| AFS, across topics" in report.table()


def test_the_regression_is_a_ridge_on_the_training_pairs_alone(pairs):
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 120, 3))
    gold = 1 + 2 * np.abs(first - second)[:, 0] - (first * second)[:, 1] + 0.01 * rng.normal(size=120)
    fold = Fold(np.arange(80), np.arange(80, 120))
    given = regress(first, second, gold, fold)
    features = np.hstack([np.abs(first - second), first * second])
    candidates = [
        Ridge(alpha).fit(features[:80], gold[:80]).predict(features[80:]) for alpha in 10.0 ** np.arange(-3, 4)
    ]
    assert min(np.abs(given - each).max() for each in candidates) < 1e-6
    assert np.abs(given - gold[80:]).max() < 0.1
    # Ratings of test pairs are never seen.
    gold[80:] = 0
    assert regress(first, second, gold, fold) == pytest.approx(given)


def test_supervised_tasks_are_means_over_folds_and_topics(data, pairs):
    rng = np.random.default_rng(0)
    first = rng.normal(size=(120, 4))
    # The difference of the first numbers is the rating.
    second = first.copy()
    second[:, 0] -= pairs.gold
    given = np.concatenate([first, second]).astype(np.float32)
    for task, count in zip(TASKS[1:], (10, 3), strict=True):
        result = task.prepare(data).score(given)
        assert len(result.subsets) == count
        assert result.score == result.spearman == pytest.approx(np.mean([p.spearman for p in result.subsets]))
        assert result.pearson == pytest.approx(np.mean([p.pearson for p in result.subsets]))
        assert result.pearson > 99
        assert sum(part.n for part in result.subsets) == result.n == 120
        assert len(result.cells()) == len(result.COLUMNS)


def test_quotes_that_went_through_two_encodings(tmp_path, few):
    path = write_facets(tmp_path, few) / "AFS" / "ArgPairs_GC.csv"
    path.write_bytes(b"1,,,,,,,,,it\x89\xdb\xaas a \x89\xdb\xcfright\x89\xdb\x9d,caf\x8e\n" * 10)
    pairs = read_facets(tmp_path)
    assert pairs.first[SIZES["DP"]] == 'it\'s a "right"'
    assert pairs.second[SIZES["DP"]] == "café"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2,3", r"ArgPairs_GM\.csv, line 52: 3 columns"),
        ("high,,,,,,,,,a,b", r"ArgPairs_GM\.csv, line 52: 'high' is not a rating"),
        ("7,,,,,,,,,a,b", r"ArgPairs_GM\.csv, line 52: the rating 7 is outside 0 to 5"),
    ],
)
def test_malformed_rows_are_named(line, message, data):
    with (data / "AFS" / "ArgPairs_GM.csv").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match=message):
        read_facets(data)


def test_missing_files_and_too_few_pairs_are_told(data, few, tmp_path_factory):
    (data / "AFS" / "ArgPairs_DP.csv").unlink()
    with pytest.raises(TaskMissing, match=r"AFS/ArgPairs_DP\.csv"):
        read_facets(data)
    little = write_facets(tmp_path_factory.mktemp("little"), few, {"DP": 20, "GC": 4, "GM": 20})
    with pytest.raises(DataError, match="has 4 pairs, and 10 folds"):
        TASKS[1].prepare(little)
