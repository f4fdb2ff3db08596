import math
from pathlib import Path

import numpy as np
import pytest

from likewise.evaluation.pairs import cosines
from likewise.evaluation.registry import resolve
from likewise.evaluation.task import DataError
from likewise.evaluation.tasks.classes import cluster_agreement, right_neighbours


def task(folder: Path, part: str = ""):
    return resolve([f"classes:{folder}{part}"])[0][0]


def write(folder: Path, **parts: list[tuple[str, str]]) -> Path:
    for part, rows in parts.items():
        (folder / f"{part}.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    return folder


TRAIN = [("sea", f"wave {i}") for i in range(7)] + [("land", f"hill {i}") for i in range(12)]


def vector(text: str) -> list[float]:
    """The sea and the land at right angles; lengths do not matter."""
    near = 0.01 * len(text)
    return [near, 3.0] if "wave" in text or text == "tide" else [1.0, near]


def test_accuracy_and_v_measure_by_hand(tmp_path):
    part = [("sea", "tide"), ("land", "slope"), ("sky", "a grey cloud")]
    folder = write(tmp_path, train=TRAIN, test=part)
    prepared = task(folder).read(Path())
    assert prepared.sentences == [text for _, text in TRAIN] + ["tide", "slope", "a grey cloud"]
    found = prepared.score(np.array([vector(text) for text in prepared.sentences]))
    # The tide's ten neighbours are 7 of the sea and 3 of the land; no training row is of the sky.
    assert found.score == pytest.approx(100 * 2 / 3)
    assert (found.metric, found.n, found.classes, found.training) == ("10-nn accuracy", 3, 3, 19)
    # As many clusters as texts, each with a class of its own.
    assert found.v_measure == pytest.approx(100)
    assert math.isnan(prepared.score(np.full((22, 2), np.nan)).score)


def test_the_vote_beside_a_loop():
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(130, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = np.array(list("abc"))[rng.integers(0, 3, size=130)]
    right = 0
    for vector, label in zip(vectors[100:], labels[100:], strict=True):
        near = labels[:100][np.argsort(-(vectors[:100] @ vector))[:10]].tolist()
        right += max(sorted(set(near)), key=near.count) == label
    assert right_neighbours(cosines(vectors[100:], vectors[:100]), labels[:100], labels[100:]).sum() == right


def test_v_measure_of_clusters_that_cut_across_the_classes():
    # Two tight groups; one holds both texts of a and one of b, the other the other b.
    vectors = np.array([[1.0, 0], [1, 0.01], [1, 0.02], [0, 1]])
    entropy = math.log(2)  # of the classes, 2 and 2
    of_clusters = -(3 / 4 * math.log(3 / 4) + 1 / 4 * math.log(1 / 4))
    given = 3 / 4 * -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))  # of the classes, given the cluster
    pure, whole = 1 - given / entropy, 1 - (of_clusters - (entropy - given)) / of_clusters
    found = cluster_agreement(vectors, np.array(["a", "a", "b", "b"]))
    assert found == pytest.approx(2 * pure * whole / (pure + whole))


def test_names_of_the_files_and_parts(tmp_path, says):
    rows = [("label", "text"), *TRAIN]
    folder = write(tmp_path, **{"classes-train": rows, "classes-dev": [("sea", "tide")], "test": [("land", "slope")]})
    assert len(task(folder).load()[0]) == len(TRAIN)
    assert task(folder).read(Path()).sentences[-1] == "slope"
    assert task(folder, ":dev").read(Path()).sentences[-1] == "tide"
    with says(DataError):
        task(folder, ":train").read(Path())
    with says(DataError):
        task(folder, ":last").read(Path())


@pytest.mark.parametrize(
    "text",
    [
        "sea\ttide\nland slope\n",
        "sea\ttide\nland\tslope\tmore\n",
        "sea\t\n",
        "",
    ],
)
def test_broken_files_are_named_with_the_line(text, tmp_path, says):
    (write(tmp_path, train=TRAIN) / "test.tsv").write_text(text)
    with says(DataError):
        task(tmp_path).read(Path())


def test_too_few_training_texts(tmp_path, says):
    with says(DataError):
        task(write(tmp_path, train=TRAIN[:9], test=TRAIN[:1])).read(Path())


def test_training_texts_of_one_label(tmp_path, says):
    with says(DataError):
        task(write(tmp_path, train=[("sea", text) for _, text in TRAIN], test=TRAIN[:1])).load()


def test_labels_that_no_training_text_has_are_told(tmp_path, says):
    with says(DataError):
        task(write(tmp_path, train=TRAIN, test=[(f"{label}.0", text) for label, text in TRAIN])).load()
