from likewise.evaluation import DataError, find_data
from likewise.runs.cache import data_folder


def test_the_data_folder_is_given_or_named_or_the_one_of_data_get(tmp_path, monkeypatch, says):
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    beside = tmp_path / "shared/data/senteval"
    (beside / "STS").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")  # a folder beside the working folder is not taken unasked
    with says(DataError):
        find_data()
    with says(DataError):
        find_data(tmp_path / "nowhere")
    (data_folder() / "senteval" / "MR").mkdir(parents=True)
    assert find_data() == data_folder() / "senteval"
    own = tmp_path / "own"
    (own / "SICK").mkdir(parents=True)
    monkeypatch.setenv("LIKEWISE_DATA", str(own))
    assert find_data() == own
    # The folder of all data is as good as the one in it, and what is given goes before the variable.
    assert find_data(tmp_path / "shared/data") == beside
    assert find_data(str(beside)) == beside
    monkeypatch.setenv("LIKEWISE_DATA", str(beside))
    assert find_data() == beside
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "gone"))
    with says(DataError):
        find_data()
