import pytest

from likewise.evaluation.tasks import DataError, TaskResult, find_data, plain


def test_where_the_data_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    with pytest.raises(DataError, match=r"none was named.*SentEval's layout"):
        find_data()
    with pytest.raises(DataError, match="nowhere"):
        find_data(tmp_path / "nowhere")
    beside = tmp_path / "shared/data/senteval"
    (beside / "STS").mkdir(parents=True)
    assert find_data().resolve() == beside
    own = tmp_path / "own"
    (own / "SICK").mkdir(parents=True)
    monkeypatch.setenv("LIKEWISE_DATA", str(own))
    assert find_data() == own
    # The folder of all data is as good as the one in it, and what is named goes before the variable.
    assert find_data(tmp_path / "shared/data") == beside
    assert find_data(str(beside)) == beside
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "gone"))
    with pytest.raises(DataError, match="gone"):
        find_data()


def test_undefined_scores_become_none():
    result = TaskResult("x", "X", "accuracy", float("nan"), 3)
    assert result.to_dict()["score"] is None
    assert result.cells() == ("X", "accuracy", "-", "3")
    assert plain({"a": (1.0, float("nan"))}) == {"a": [1.0, None]}
