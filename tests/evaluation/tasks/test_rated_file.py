import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest

from likewise.evaluation.pairs import pair_cosines
from likewise.evaluation.registry import resolve


def task(path: Path):
    return resolve([f"pairs:{path}"])[0][0]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def scored(path: Path, scores: list[float]):
    return task(path).read(Path()).score_pairs(np.array(scores))


def test_spearman_by_hand(tmp_path):
    path = write(tmp_path / "pairs.tsv", '0.1\ta "cat\ta dog\n3\tone\ttwo\n\n2.5\tthree\tfour\n')
    prepared = task(path).read(Path())
    assert prepared.sentences == ['a "cat', "one", "three", "a dog", "two", "four"]
    # Ranks 1, 3, 2 of the file and 1, 2, 3 of the model: 1 - 6 (0 + 1 + 1) / (3 (9 - 1)) = 0.5.
    found = scored(path, [0.0, 0.5, 0.9])
    assert (found.metric, found.n, found.average_precision) == ("spearman", 3, None)
    assert found.score == found.spearman == pytest.approx(50)
    turned = np.radians([0, 0, 0, 80, 60, 10])  # cosines rise
    vectors = np.stack([np.cos(turned), np.sin(turned)], axis=1)
    assert prepared.score(vectors).score == pytest.approx(50)


def test_average_precision_by_hand_is_the_main_score_of_yes_and_no(tmp_path):
    path = write(tmp_path / "pairs.tsv", "1\ta\tb\n0\tc\td\n1.0\te\tf\n0\tg\th\n")
    # In the order of the scores: no, yes, no, yes; the precision at the two is 1/2 and 2/4.
    found = scored(path, [0.8, 0.9, 0.1, 0.5])
    assert found.metric == "average precision"
    assert found.score == found.average_precision == pytest.approx(50)
    # Ranks 3.5, 1.5, 3.5, 1.5 beside 3, 4, 1, 2: less their means, products sum to -2, squares to 4 and 5.
    assert found.spearman == pytest.approx(-200 / math.sqrt(20))
    assert math.isnan(scored(path, [1, 1, 1, 1]).score)
    assert math.isnan(scored(path, [math.nan, 1, 1, 1]).score)


@pytest.mark.parametrize("end", ["csv", "tsv", "csv.gz"])
def test_columns_by_name_in_any_order(end, tmp_path):
    if end.startswith("csv"):
        text = 'id,Sentence1,score,sentence2\n1,"one, two",4,three\n2,"a\nb",5,c\n'
    else:
        text = "id\tSentence1\tscore\tsentence2\n1\tone, two\t4\tthree\n2\ta\nb\t5\tc\n".replace("a\nb", "a b")
    path = tmp_path / f"pairs.{end}"
    path.write_bytes(gzip.compress(text.encode()) if end.endswith("gz") else text.encode())
    pairs = task(path).load()
    assert [" ".join(text.split()) for text in pairs.first] == ["one, two", "a b"]
    assert (pairs.second, pairs.gold.tolist()) == (["three", "c"], [4.0, 5.0])


def test_the_score_of_three_columns_without_a_header_may_be_the_last(tmp_path):
    pairs = task(write(tmp_path / "pairs.tsv", "a 1\tb\t4\nc\td\t2\n")).load()
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (["a 1", "c"], ["b", "d"], [4.0, 2.0])


def test_rows_of_json_with_the_names_that_data_sets_use(tmp_path):
    rows = [{"id": 1, "sentence_A": "a", "sentence_B": "b", "relatedness_score": 4}]
    rows += [{"sentence_A": "c", "sentence_B": "d", "relatedness_score": 1.5}]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    pairs = task(write(tmp_path / "pairs.jsonl", text)).load()
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (["a", "c"], ["b", "d"], [4.0, 1.5])


def test_what_is_evaluated_is_what_is_trained_on(tmp_path):
    from likewise.training.objectives import STS, read_sts

    for name, text in (("a.tsv", "1\ta\tb\n5\tc\td\n"), ("b.csv", "sentence2,score,sentence1\nb,1,a\nd,5,c\n")):
        path = write(tmp_path / name, text)
        pairs, rows = task(path).load(), read_sts([path], None, STS.options()).dataset
        assert (pairs.first, pairs.second) == (rows["sentence1"][:], rows["sentence2"][:])
        assert (pairs.gold / 5).tolist() == pytest.approx(rows["label"][:])


def test_the_title_names_folder_and_file(tmp_path):
    one = task(write(tmp_path / "Pairs-test.tsv", "1\ta\tb\n2\tc\td\n"))
    assert (one.name, one.title) == (f"pairs:{tmp_path}/Pairs-test.tsv", f"{tmp_path.name}/Pairs-test")
    assert one.read(Path()).score_pairs


@pytest.mark.parametrize("head", ["", "sep=;\n", "sep=;\nscore;sentence1;sentence2\n", "score;sentence1;sentence2\n"])
def test_files_of_excel_with_semicolons_and_decimal_commas(head, tmp_path):
    pairs = task(write(tmp_path / "a.csv", f"{head}1,5;a;b\n4,25;c;d\n")).load()
    assert pairs.gold.tolist() == [1.5, 4.25]
    assert pairs.first == ("a", "c") or list(pairs.first) == ["a", "c"]


def test_pairs_of_equal_vectors_tie():
    rows = np.random.default_rng(0).normal(size=(50, 384)).astype(np.float32)
    assert set(pair_cosines(rows, rows).tolist()) == {1.0}
