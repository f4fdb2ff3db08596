from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from likewise.runs.whole_files import (
    Parts,
    SavedStates,
    is_sealed,
    read_json,
    seal,
    write_json,
    write_text,
    written_whole,
)


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


def filled(folder: Path) -> Parts:
    parts = Parts(folder)
    for i in range(3):
        with parts.new(f"{i}.txt", rows=i) as path:
            path.write_text(f"part {i}")
    return parts


def test_parts_are_found_again_with_their_facts(tmp_path: Path) -> None:
    filled(tmp_path)
    found = Parts(tmp_path)
    assert list(found.facts) == ["0.txt", "1.txt", "2.txt"]
    assert [line["rows"] for line in found.facts.values()] == [0, 1, 2]
    assert found.path("1.txt").read_text() == "part 1"


@pytest.mark.parametrize("damage", ["truncate", "flip", "remove"])
def test_a_damaged_part_does_not_count(tmp_path: Path, damage: str) -> None:
    path = filled(tmp_path).path("1.txt")
    if damage == "remove":
        path.unlink()
    else:
        path.write_text("part" if damage == "truncate" else "part 7")
    found = Parts(tmp_path)
    assert list(found.facts) == ["0.txt", "2.txt"]
    with found.new("1.txt") as again:
        again.write_text("part 1")
    assert set(Parts(tmp_path).facts) == {"0.txt", "1.txt", "2.txt"}


def test_an_index_from_elsewhere_names_nothing_outside_its_folder(tmp_path: Path) -> None:
    filled(tmp_path / "parts")
    (tmp_path / "mine").write_text("part 0")
    index = tmp_path / "parts" / "parts.jsonl"
    line = json.loads(index.read_text().split("\n")[1])
    for name in ("../mine", str(tmp_path / "mine"), "x/../../mine"):
        index.write_text(f"{index.read_text()}\n{json.dumps(line | {'name': name})}")
    found = Parts(tmp_path / "parts")
    assert list(found.facts) == ["0.txt", "1.txt", "2.txt"]
    found.drop(*found.facts)
    assert (tmp_path / "mine").exists()


def test_an_index_cut_in_two_loses_its_last_line_alone(tmp_path: Path) -> None:
    filled(tmp_path)
    index = tmp_path / "parts.jsonl"
    index.write_text(index.read_text()[:-10])
    found = Parts(tmp_path)
    assert list(found.facts) == ["0.txt", "1.txt"]
    with found.new("2.txt") as path:
        path.write_text("part 2")
    assert len(Parts(tmp_path)) == 3


def test_a_part_that_failed_leaves_nothing(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    with pytest.raises(RuntimeError), parts.new("x") as path:
        path.write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    assert "x" not in parts


def test_a_sealed_folder_knows_its_damage(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    assert not is_sealed(tmp_path)
    seal(tmp_path)
    assert is_sealed(tmp_path)
    (tmp_path / "deep" / "a").write_text("c")
    assert not is_sealed(tmp_path)
    (tmp_path / "deep" / "a").unlink()
    assert not is_sealed(tmp_path)


def test_states_go_back_to_the_last_good_one(tmp_path: Path) -> None:
    states = SavedStates(tmp_path)
    assert states.load() is None
    for step in (10, 20, 30):
        states.save(step, {"weights": torch.full((3,), float(step)), "rate": 0.5})
    assert sorted(path.name for path in tmp_path.glob("*.pt")) == ["000000020.pt", "000000030.pt"]
    step, state = SavedStates(tmp_path).load() or (0, {})
    assert (step, state["rate"]) == (30, 0.5)
    assert torch.equal(state["weights"], torch.full((3,), 30.0))
    (tmp_path / "000000030.pt").write_bytes((tmp_path / "000000030.pt").read_bytes()[:-1])
    step, state = SavedStates(tmp_path).load() or (0, {})
    assert torch.equal(state["weights"], torch.full((3,), 20.0))
    assert step == 20
