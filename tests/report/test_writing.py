import json

import pytest

from likewise.report.writing import ReportError, markdown_table, open_folder, write_json, write_text


def test_a_file_is_whole_and_nothing_is_left_beside_it(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    assert write_text(tmp_path / "a.txt", "új\n").read_bytes() == "új\n".encode()
    assert json.loads(write_json(tmp_path / "a.json", {"a": [1, None]}).read_text()) == {"a": [1, None]}
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "b.json", {"a": float("nan")})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.txt"]


def test_a_folder_is_made_or_refused(tmp_path):
    assert open_folder(tmp_path / "a" / "b").is_dir()
    assert open_folder(tmp_path / "a").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="cannot be made a folder"):
        open_folder(tmp_path / "file")


def test_a_cell_cannot_break_the_table():
    lines = markdown_table(("Text", "N"), [("a | b\nc", "1")]).splitlines()
    assert lines[2] == "| a \\| b c |   1 |"
    assert len({len(line) for line in lines}) == 1
