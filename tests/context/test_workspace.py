"""Stages: whole or not there, found again, resumed, and refused when stale."""

import pytest

from likewise.context import workspace
from likewise.context.workspace import ContextError, Stage, Workspace
from likewise.runs.job import JobError
from likewise.runs.options import Options, option


class Toy(Options):
    size: int = option(1, "A number.")
    names: tuple[str, ...] = option(("a",), "Some names.")


@pytest.fixture(autouse=True)
def stages(monkeypatch):
    monkeypatch.setattr(workspace, "COMMANDS", {"index": "index --corpus FILES", "model": "train model"})


@pytest.fixture
def space(tmp_path) -> Workspace:
    return Workspace(tmp_path / "work")


def make(space: Workspace, name: str, text: str, options: Toy | None = None, needs=(), **more) -> Stage:
    with space.open(name, options or Toy(), needs, **more) as job:
        assert not job.finished
        (job.result / "out.txt").write_text(text)
        job.finish({"length": len(text), "fingerprint": f"of {text}"})
    return space.require(name)


def test_a_stage_appears_whole_and_with_its_record(space, says):
    with space.open("index", Toy(), inputs={"corpus": "abc"}) as job:
        (job.result / "out.txt").write_text("text")
        with says(ContextError):
            space.require("index")
        job.finish({"length": 4, "fingerprint": "x"})
    assert (space.path / "index" / "out.txt").read_text() == "text"
    assert [path.name for path in space.path.iterdir()] == ["index"]
    record = space.require("index").record
    assert record["length"] == 4
    assert record["plan"]["options"] == {"size": 1, "names": ["a"]}
    assert record["plan"]["inputs"] == {"corpus": "abc"}
    assert record["versions"]["torch"]


def test_the_same_again_is_found(space, says):
    first = make(space, "index", "text")
    with space.open("index", Toy()) as job:
        assert job.finished == first.record
    with says(JobError), space.open("index", Toy(size=2)):
        pass
    with says(JobError), space.open("index", Toy(), inputs={"corpus": "new"}):
        pass


def test_what_was_stopped_goes_on_with_the_same_plan_alone(space, says):
    with space.open("index", Toy()) as job:
        (job.work / "half.txt").write_text("half")
    with says(ContextError):
        space.require("index")
    with says(JobError), space.open("index", Toy(size=3)):
        pass
    with space.open("index", Toy()) as job:
        assert (job.work / "half.txt").read_text() == "half"
    with space.open("index", Toy(size=3), overwrite=True) as job:
        assert not (job.work / "half.txt").exists()


def test_overwriting_leaves_the_old_stage_until_the_new_one_is_whole(space):
    make(space, "index", "old")
    with space.open("index", Toy(size=2), overwrite=True) as job:
        assert (space.require("index").folder / "out.txt").read_text() == "old"
        (job.result / "out.txt").write_text("new")
        job.finish({"fingerprint": "of new"})
    assert (space.path / "index" / "out.txt").read_text() == "new"


def test_a_stage_made_from_what_has_changed_is_stale(space, says):
    make(space, "index", "one")
    make(space, "model", "m", needs=["index"])
    assert space.require("model").record["plan"]["inputs"] == {"index": "of one"}
    make(space, "index", "two", Toy(size=2), overwrite=True)
    with says(ContextError):
        space.require("model")
    with says(JobError), space.open("model", Toy(), ["index"]):
        pass
    make(space, "index", "one", Toy(size=3), overwrite=True)
    assert space.require("model"), "the same content by another way is the same index"


def test_a_missing_input_is_told_before_work(space, says):
    with says(ContextError), space.open("model", Toy(), ["index"]):
        pass
    assert not space.path.exists()


def test_a_damaged_record_is_named(space, says):
    make(space, "index", "one")
    (space.path / "index" / "likewise.json").write_text("{")
    with says(JobError):
        space.require("index")


def test_a_file_is_no_workspace(tmp_path, says):
    (tmp_path / "work").write_text("")
    with says(ContextError):
        Workspace(tmp_path / "work")
