from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from likewise.runs.finished_parts import Parts, SavedStates, is_sealed, seal


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
