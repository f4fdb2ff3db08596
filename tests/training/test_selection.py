import numpy as np
import pytest
from datasets import Dataset

from likewise.evaluation import DataError
from likewise.recipes import RECIPES
from likewise.training.selection import choose_selection, hold_out


@pytest.fixture
def dataset(sentences):
    return Dataset.from_dict({"sentence": sentences, "words": [len(s.split()) for s in sentences]})


def sts_b(folder, n=1500):
    (folder / "STS" / "STSBenchmark").mkdir(parents=True)
    rows = [f"main-news\tx\t2020\t{i}\t{i % 6}.0\tthe cat {i}\tthe dog {i}" for i in range(n)]
    (folder / "STS" / "STSBenchmark" / "sts-dev.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_held_out_sentences_are_kept_from_training(dataset):
    options = RECIPES["simcse"].options(select_by="held-out", held_out=30)
    chosen = choose_selection(dataset, options, 1, None)
    trained = set(dataset.select(chosen.rows)["sentence"])
    assert len(trained) == 370
    assert not trained & set(chosen.evaluator.sentences)
    assert choose_selection(dataset, options, 1, None).rows.tolist() == chosen.rows.tolist()
    assert choose_selection(dataset, options, 2, None).rows.tolist() != chosen.rows.tolist()


def test_never_more_than_a_tenth_is_held_out(dataset):
    chosen = choose_selection(dataset, RECIPES["simcse"].options(select_by="held-out"), 1, None)
    assert len(chosen.rows) == 360


def test_auto_takes_sts_b_dev_where_it_is(dataset, tmp_path, monkeypatch):
    options = RECIPES["simcse"].options()
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "nothing"))
    assert choose_selection(dataset, options, 1, None).metric == "held_out_separation"
    with pytest.raises(DataError):  # a folder that was named must hold it
        choose_selection(dataset, options, 1, tmp_path / "nothing")
    with pytest.raises(DataError):
        choose_selection(dataset, RECIPES["simcse"].options(select_by="sts-b-dev"), 1, None)
    if_there = choose_selection(dataset, options, 1, sts_b(tmp_path / "data"))
    assert if_there.rows is None
    assert if_there.metric == "sts_dev_spearman"


GERMAN = [f"Die Pumpe {i} ist heute undicht, und der Techniker muss die Dichtung austauschen." for i in range(400)]
CHINESE = [f"地下室的水泵{i}昨天晚上突然坏了，今天早上技术员来修理。" for i in range(400)]
TITLES = [f"Pumpe {i} undicht" for i in range(400)]


@pytest.mark.parametrize("texts", [GERMAN, CHINESE])
def test_sts_b_dev_chooses_for_english_alone(texts, tmp_path):
    options, data = RECIPES["simcse"].options(), sts_b(tmp_path / "data")
    dataset = Dataset.from_dict({"sentence": texts, "words": [9] * len(texts)})
    chosen = choose_selection(dataset, options, 1, data)
    assert chosen.metric == "held_out_separation"
    named = choose_selection(dataset, options.updated(select_by="sts-b-dev"), 1, data)
    assert named.metric == "sts_dev_spearman", "who asks for it gets it"


@pytest.mark.parametrize("texts", [CHINESE, TITLES])
def test_held_out_sentences_of_any_script_and_length_get_damaged_copies(texts):
    dataset = Dataset.from_dict({"sentence": texts, "words": [9] * len(texts)})
    evaluator = choose_selection(dataset, RECIPES["simcse"].options(select_by="held-out"), 1, None).evaluator
    own, copies = evaluator.sentences[:40], evaluator.sentences[40:]
    assert len(copies) == 40
    assert all(0 < len(copy) < len(text) for text, copy in zip(own, copies, strict=True))


def test_sentences_of_one_word_keep_the_last_checkpoint():
    dataset = Dataset.from_dict({"sentence": [f"pump{i}" for i in range(100)], "words": [1] * 100})
    chosen = choose_selection(dataset, RECIPES["simcse"].options(select_by="held-out"), 1, None)
    assert chosen.evaluator is None
    assert "one word" in chosen.description


def test_a_handful_of_sentences_is_not_divided(dataset):
    chosen = choose_selection(dataset.select(range(12)), RECIPES["simcse"].options(select_by="held-out"), 1, None)
    assert chosen.evaluator is None
    assert "last (" in chosen.description


def test_rows_of_one_group_stay_together():
    groups = [f"premise {i // 3}" for i in range(90)]
    kept, held = hold_out(groups, 6, seed=1)
    assert sorted([*kept, *held]) == list(range(90))
    assert len(held) == 6
    assert not {groups[i] for i in kept} & {groups[i] for i in held}
    assert np.array_equal(hold_out(groups, 6, seed=1)[1], held)
    assert not np.array_equal(hold_out(groups, 6, seed=2)[1], held)


def test_a_large_group_is_trained_on():
    groups = ["large"] * 300 + list(range(100))
    assert all(len(hold_out(groups, 500, seed)[1]) == 40 for seed in range(20))
    assert len(hold_out(["one"] * 300, 500, seed=1)[1]) == 0


def test_a_tenth_at_most():
    kept, held = hold_out(list(range(50)), 500, seed=1)
    assert (len(kept), len(held)) == (45, 5)
    assert len(hold_out(list(range(5)), 500, seed=1)[1]) == 0
