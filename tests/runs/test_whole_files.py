import json
import os

import pytest

from likewise.runs.whole_files import read_json, write_json, write_text, written_whole


def test_after_an_error_the_old_file_is_there_and_nothing_beside_it(tmp_path):
    path = write_text(tmp_path / "a.txt", "old\n")
    with pytest.raises(RuntimeError), written_whole(path) as unfinished:
        unfinished.write_text("half")
        assert not list(tmp_path.glob("*.txt"))[1:]
        assert path.read_text() == "old\n"
        raise RuntimeError
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old\n"


def test_json_comes_back_and_nan_is_refused_where_asked(tmp_path):
    path = write_json(tmp_path / "a.json", {"name": "Zoë", "score": 1.5})
    assert read_json(path) == {"name": "Zoë", "score": 1.5}
    assert "Zoë" in path.read_text(encoding="utf-8")
    with pytest.raises(TypeError):
        write_json(path, {"score": object()})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"score": float("nan")}, strict=True)
    assert json.loads(path.read_text(encoding="utf-8"))["score"] == 1.5


def test_a_file_has_the_mode_that_the_mask_gives(tmp_path):
    before = os.umask(0o027)
    try:
        with written_whole(tmp_path / "a.bin") as unfinished:
            os.close(os.open(unfinished, os.O_CREAT | os.O_WRONLY, 0o600))  # as safetensors does
    finally:
        assert os.umask(before) == 0o027
    assert (tmp_path / "a.bin").stat().st_mode & 0o777 == 0o640


def test_temporary_names_cannot_be_guessed_and_belong_to_a_file_of_their_own(tmp_path):
    names = set()
    for _ in range(20):
        with written_whole(tmp_path / "a.txt") as unfinished:
            assert unfinished.is_file()
            assert not unfinished.is_symlink()
            assert unfinished.stat().st_mode & 0o777 == 0o600
            unfinished.write_text("x")
            names.add(unfinished.name)
    assert len(names) == 20
    longest = "é" * 127
    assert write_text(tmp_path / longest, "x").read_text() == "x"


def test_a_result_in_place_of_a_link_leaves_the_file_behind_the_link_alone(tmp_path):
    (tmp_path / "theirs.txt").write_text("precious")
    (tmp_path / "a.txt").symlink_to(tmp_path / "theirs.txt")
    write_text(tmp_path / "a.txt", "ours")
    assert (tmp_path / "theirs.txt").read_text() == "precious"
    assert (tmp_path / "a.txt").read_text() == "ours"
