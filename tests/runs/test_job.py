from __future__ import annotations

import errno
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from likewise.runs.cache import CacheError, cached
from likewise.runs.job import Job, JobError, Plan, check_target, complete_installation, open_job, read_record, work_of
from likewise.runs.releases import versions
from likewise.runs.results import note_results

PLAN = Plan("train toy", {"seed": 1, "nested": {"rate": 0.1}}, {"corpus": "abc"})


def write(job: Job, **files: str) -> None:
    for name, text in files.items():
        path = job.result / name.replace("__", "/").replace("_json", ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def content(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*") if p.is_file()}


def make(folder: Path, plan: Plan = PLAN, overwrite: bool = False, **files: str) -> None:
    with open_job(folder, plan, overwrite=overwrite) as job:
        write(job, **files)
        job.finish({"score": 1.5})


def test_a_finished_job_is_installed_and_recorded(tmp_path: Path) -> None:
    make(tmp_path / "out", modules_json="m", sub__weights="w")
    record = json.loads((tmp_path / "out" / "likewise.json").read_text())
    assert record["plan"]["options"] == {"seed": 1, "nested": {"rate": 0.1}}
    assert record["files"] == ["modules.json", "sub/weights"]
    assert (record["score"], record["status"]) == (1.5, "finished")
    assert not work_of(tmp_path / "out").exists()
    with open_job(tmp_path / "out", PLAN) as job:
        assert job.finished == record
    assert set(content(tmp_path / "out")) == {"likewise.json", "modules.json", "sub/weights"}


@pytest.mark.parametrize(
    "plan",
    [
        Plan("encode", PLAN.options, PLAN.inputs),
        Plan(PLAN.job, {**PLAN.options, "seed": 2}, PLAN.inputs),
        Plan(PLAN.job, {"seed": 1, "nested": {"rate": 0.2}}, PLAN.inputs),
        Plan(PLAN.job, PLAN.options, {"corpus": "abd"}),
        Plan(PLAN.job, PLAN.options, PLAN.inputs, format=2),
    ],
)
def test_another_plan_is_refused_with_the_first_difference(tmp_path: Path, plan: Plan, says) -> None:
    out = tmp_path / "out"
    with open_job(out, PLAN) as job:
        (job.work / "state").write_text("1")
    with says(JobError), open_job(out, plan):
        pass
    with open_job(out, PLAN) as job:
        assert job.resumed
        assert (job.work / "state").read_text() == "1"
        write(job, a="x")
        job.finish()
    before = content(out)
    with says(JobError), open_job(out, plan):
        pass
    assert content(out) == before


def test_an_option_that_an_earlier_release_did_not_know_had_its_default(tmp_path: Path, says) -> None:
    make(tmp_path / "out", a="1")
    with open_job(tmp_path / "stopped", PLAN) as job:
        write(job, a="half")
    later = {**PLAN.options, "final_stop": False}
    now = Plan(PLAN.job, later, PLAN.inputs, defaults={"final_stop": False, "seed": 7, "gone": 1})
    with open_job(tmp_path / "out", now) as job:
        assert job.finished is not None
    with open_job(tmp_path / "stopped", now) as job:
        assert job.resumed
        assert job.result.joinpath("a").read_text() == "half"
    asked = Plan(PLAN.job, {**later, "final_stop": True}, PLAN.inputs, defaults=now.defaults)
    for folder in ("out", "stopped"):
        with says(JobError), open_job(tmp_path / folder, asked):
            pass


def test_stopped_work_is_for_the_same_releases_only(tmp_path: Path, says) -> None:
    old = Plan(PLAN.job, PLAN.options, PLAN.inputs, versions={**PLAN.versions, "torch": "1.0"})
    with open_job(tmp_path / "out", old) as job:
        (job.work / "state").write_text("1")
    with says(JobError, hidden=re.escape(PLAN.versions["torch"])), open_job(tmp_path / "out", PLAN):
        pass
    make(tmp_path / "done", old, a="x")
    with open_job(tmp_path / "done", PLAN) as job:
        assert job.finished


def test_resume_insists_on_stopped_work(tmp_path: Path, says) -> None:
    with says(JobError), open_job(tmp_path / "out", PLAN, resume=True):
        pass
    assert not (tmp_path / "out").exists()


def test_overwriting_resumes_its_own_stopped_work_and_throws_other_work_away(tmp_path: Path, says) -> None:
    out = tmp_path / "out"
    make(out, a="old")

    def stop(plan: Plan) -> Job:
        with pytest.raises(KeyboardInterrupt), open_job(out, plan, overwrite=True) as job:
            (job.work / "state").write_text(str(plan.options))
            raise KeyboardInterrupt
        return job

    other = Plan(PLAN.job, {"seed": 2})
    assert not stop(PLAN).resumed
    assert stop(PLAN).resumed
    changed = stop(other)
    assert not changed.resumed
    assert str(out) in changed.thrown_away
    with says(JobError), open_job(out, other, overwrite=True) as job:
        assert job.resumed
        raise JobError("a checkpoint is damaged")
    with open_job(out, other, overwrite=True) as job:
        assert not job.resumed
        write(job, a="new")
        job.finish()
    assert content(out)["a"] == "new"
    with open_job(out, other, overwrite=True) as job:  # what is finished is made again
        assert not job.resumed
        assert job.finished is None


def test_overwriting_replaces_only_its_own_files_and_only_in_the_end(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(out, modules_json="old", only_old__deep="o")
    (out / "corpus.txt").write_text("mine")
    (out / "new").write_text("mine too")
    other = Plan(PLAN.job, {"seed": 2})
    with pytest.raises(RuntimeError), open_job(out, other, overwrite=True) as job:
        write(job, modules_json="new", new="n")
        assert content(out)["modules.json"] == "old"
        raise RuntimeError
    assert content(out)["modules.json"] == "old"
    make(out, other, overwrite=True, modules_json="new", new="n")
    found = content(out)
    assert {name: found[name] for name in found if name != "likewise.json"} == {
        "modules.json": "new",
        "new": "n",
        "new.before": "mine too",
        "corpus.txt": "mine",
    }
    assert not (out / "only_old").exists()


def test_a_folder_of_other_files_is_never_touched(tmp_path: Path, says) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "x").write_text("mine")
    for overwrite in (False, True):
        with says(JobError), open_job(tmp_path, PLAN, overwrite=overwrite):
            pass
    assert content(tmp_path) == {"checkpoints/x": "mine"}


def test_targets_of_the_wrong_kind(tmp_path: Path, says) -> None:
    (tmp_path / "file").write_text("")
    with says(JobError):
        check_target(tmp_path / "file")
    with says(JobError):
        check_target(tmp_path, "file")
    with says(JobError):
        check_target(tmp_path / "none" / "v.npy", "file")
    with says(JobError):
        check_target("")
    for kind in ("folder", "file"):
        with says(JobError):
            check_target(tmp_path / "two\nlines.npy", kind)


def test_a_job_that_fails_at_once_leaves_nothing(tmp_path: Path) -> None:
    for folder in ("", "parts"):
        with pytest.raises(RuntimeError), open_job(tmp_path / "out", PLAN) as job:
            (job.work / folder).mkdir(exist_ok=True)
            raise RuntimeError
        assert list(tmp_path.iterdir()) == []


def test_notes_and_seconds_outlive_a_stop(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), open_job(tmp_path / "out", PLAN) as job:
        job.note(before=81.0, seconds=1000.0)
        raise KeyboardInterrupt
    with open_job(tmp_path / "out", PLAN) as job:
        assert job.notes["before"] == 81.0
        assert job.finish()["seconds"] >= 1000


def test_a_file_as_the_target(tmp_path: Path) -> None:
    out = tmp_path / "v.npy"
    out.write_text("old")
    note_results(out)
    with pytest.raises(KeyboardInterrupt), open_job(out, PLAN, kind="file") as job:
        (job.work / "part").write_text("1")
        raise KeyboardInterrupt
    assert out.read_text() == "old"
    with open_job(out, PLAN, kind="file") as job:
        assert job.resumed
        job.result.write_text("new")
        job.finish()
    files = content(tmp_path)
    assert files.pop("v.npy") == "new"
    assert set(files) == {".v.npy.likewise"}  # the note that lets the next run replace it


def test_a_second_process_is_refused_with_the_first_ones_id(tmp_path: Path) -> None:
    code = """
import sys
from likewise.runs.job import JobError, open_job
from likewise.runs.job import Plan
try:
    with open_job(sys.argv[1], Plan("train toy", {})):
        pass
except JobError as error:
    print(error)
"""
    with open_job(tmp_path / "out", PLAN) as job:
        (job.work / "state").write_text("1")
        said = subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], capture_output=True, text=True)
        assert f"another process ({os.getpid()}) is writing" in said.stdout
    assert (work_of(tmp_path / "out") / "state").read_text() == "1"


def killed_after(moves: int, out: Path) -> Callable[[Path, Path], Path]:
    """Return a `Path.replace` that raises KeyboardInterrupt once an installation into `out` has made its moves."""
    left, real = moves, Path.replace

    def replace(self: Path, target: Path) -> Path:
        nonlocal left
        if work_of(out) in self.parents or self.parent == out:
            if not left:
                raise KeyboardInterrupt
            left -= 1
        return real(self, target)

    return replace


@pytest.mark.parametrize("moves", range(8))
def test_installing_can_be_killed_anywhere(tmp_path: Path, moves: int, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    make(out, modules_json="old", weights="old", gone="old")
    other = Plan(PLAN.job, {"seed": 2})
    monkeypatch.setattr(Path, "replace", killed_after(moves, out))
    try:
        make(out, other, overwrite=True, modules_json="new", weights="new", added="new")
    except KeyboardInterrupt:
        assert not (out / "modules.json").exists() or (out / "modules.json").read_text() in ("old", "new")
    monkeypatch.undo()
    if (work_of(out) / "installing.json").exists():
        with open_job(out, other) as job:
            assert job.finished
    else:  # killed before the result was whole: the old job is as it was
        assert read_record(out)["plan"]["options"] == PLAN.to_dict()["options"]
        make(out, other, overwrite=True, modules_json="new", weights="new", added="new")
    found = content(out)
    del found["likewise.json"]
    assert found == {"modules.json": "new", "weights": "new", "added": "new"}
    assert read_record(out)["plan"]["options"] == {"seed": 2}


@pytest.mark.parametrize("moves", range(4, 8))
def test_an_installation_is_completed_before_its_folder_is_read(
    tmp_path: Path, moves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a job that replaces its own input: `--base runs/x --out runs/x --overwrite`."""
    out = tmp_path / "out"
    make(out, modules_json="old", weights="old")
    assert complete_installation(out) == complete_installation(tmp_path / "none") == {}
    other = Plan(PLAN.job, {"seed": 2})
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "replace", killed_after(moves, out))
        make(out, other, overwrite=True, modules_json="new", weights="new")
    assert (work_of(out) / "installing.json").exists()
    record = complete_installation(out)
    assert record["plan"]["options"] == {"seed": 2}
    assert ((out / "modules.json").read_text(), (out / "weights").read_text()) == ("new", "new")
    with open_job(out, other, overwrite=True) as job:  # the same command is done
        assert job.finished == record
    assert complete_installation(out) == {}
    with open_job(out, other, overwrite=True) as job:
        assert job.finished is None


def test_killed_after_the_last_step_of_installing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr("likewise.runs.job.shutil.rmtree", lambda *_, **__: pytest.fail("killed"))
    with pytest.raises(pytest.fail.Exception):
        make(out, a="x")
    monkeypatch.undo()
    with open_job(out, PLAN) as job:
        assert job.finished
    assert (out / "a").read_text() == "x"


def test_a_second_run_of_the_same_length_replaces_the_files_of_the_first(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(Job, "seconds", lambda self: 0.0)
    for text in ("first", "second"):
        with open_job(tmp_path / "out", PLAN, grows=True) as job:
            write(job, a=text)
            job.finish()
        assert (tmp_path / "out" / "a").read_text() == text


def test_a_folder_that_grows(tmp_path: Path, says) -> None:
    out = tmp_path / "out"

    def add(name: str) -> None:
        with open_job(out, PLAN, grows=True) as job:
            assert job.finished is None
            (job.result / f"all{name}").write_text(f"{len(list(job.result.glob('part*')))} before")
            (job.result / f"part{name}").write_text(name)
            if name == "2" and not job.resumed:
                raise KeyboardInterrupt
            job.finish({"parts": name})

    add("1")
    (out / "notes of the user").write_text("keep")
    with pytest.raises(KeyboardInterrupt):
        add("2")
    assert read_record(out)["parts"] == "1"
    assert not (out / "part2").exists()
    add("2")
    assert not work_of(out).exists()
    assert read_record(out)["files"] == ["all1", "all2", "part1", "part2"]
    assert (out / "all2").read_text() == "2 before"
    assert (out / "notes of the user").read_text() == "keep"
    with says(JobError), open_job(out, Plan(PLAN.job, {"seed": 2}), grows=True):
        pass


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError("9600 requested and 7136 written"),
        RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),
        RuntimeError("[enforce fail at inline_container.cc:664] . PytorchStreamWriter failed writing file data/3"),
        sqlite3.OperationalError("database or disk is full"),
        RuntimeError("basic_ios::clear: iostream error"),  # torch.save
        RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 80640 vs 80532"),
    ],
)
def test_a_full_disk_is_one_sentence_and_what_is_done_is_kept(tmp_path: Path, error: Exception, says) -> None:
    for target, kind in ((tmp_path / "out", "folder"), (tmp_path / "out.npy", "file")):
        with says(JobError), open_job(target, PLAN, kind=kind) as job:
            (job.work / "part").write_text("done")
            raise error
        with open_job(target, PLAN, kind=kind, resume=True) as job:
            assert (job.work / "part").read_text() == "done"


def test_a_full_disk_of_the_cache_is_named_and_not_that_of_the_target(tmp_path: Path, says) -> None:
    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with says(CacheError), open_job(tmp_path / "out", PLAN):
        cached("engines", ["a key"], full)


def kill_itself(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_of_a_job_is_one_sentence_and_what_is_done_is_kept(tmp_path: Path, says) -> None:
    with says(JobError), open_job(tmp_path, PLAN) as job:
        (job.work / "part").write_text("done")
        with ProcessPoolExecutor(1) as pool:
            list(pool.map(kill_itself, [None]))
    with open_job(tmp_path, PLAN, resume=True) as job:
        assert (job.work / "part").read_text() == "done"


def test_a_disk_too_full_for_a_note_lets_the_lock_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with says(JobError), open_job(tmp_path / "out", PLAN) as job:
        (job.work / "part").write_text("done")
        monkeypatch.setattr("likewise.runs.job.write_json", full)
        job.note(rows=1)
    monkeypatch.undo()
    with open_job(tmp_path / "out", PLAN, resume=True) as job:
        assert (job.work / "part").exists()


@pytest.mark.parametrize("listing", ["likewise.json", ".unfinished/installing.json"])
@pytest.mark.parametrize("name", ["../mine", "sub/../../mine", "link/mine", "ABSOLUTE", ".."])
def test_a_record_from_elsewhere_names_nothing_outside_its_folder(
    tmp_path: Path, name: str, listing: str, says
) -> None:
    (tmp_path / "mine").write_text("mine")
    make(tmp_path / "out", modules_json="m", sub__weights="w")
    (tmp_path / "out" / "link").symlink_to(tmp_path)
    record = read_record(tmp_path / "out")
    (tmp_path / "out" / ".unfinished").mkdir()
    bad = record | {"seconds": -1, "files": [name.replace("ABSOLUTE", str(tmp_path / "mine"))]}
    (tmp_path / "out" / listing).write_text(json.dumps(bad))
    with says(JobError):
        make(tmp_path / "out", Plan("train toy", {"seed": 2}), overwrite=True, modules_json="n")
    assert (tmp_path / "mine").read_text() == "mine"


def test_installed_files_have_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    for target, kind in ((tmp_path / "out", "folder"), (tmp_path / "out.npy", "file")):
        with open_job(target, PLAN, kind=kind) as job:
            made = job.result / "weights" if kind == "folder" else job.result
            os.close(os.open(made, os.O_CREAT, 0o600))  # as safetensors does
            job.finish()
    for path in (tmp_path / "out" / "weights", tmp_path / "out.npy"):
        assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_damage_is_named_with_its_cure(tmp_path: Path, says) -> None:
    out = tmp_path / "out"
    make(out, a="x")
    (out / "likewise.json").write_text("{")
    with says(JobError), open_job(out, PLAN, overwrite=True):
        pass
    with open_job(tmp_path / "two", PLAN) as job:
        (job.work / "state").write_text("1")
    (work_of(tmp_path / "two") / "plan.json").write_text("{")
    with open_job(tmp_path / "two", PLAN) as job:  # the copy of the plan is whole
        assert job.resumed
        assert (job.work / "state").read_text() == "1"
    for name in ("plan.json", "plan-copy.json"):
        (work_of(tmp_path / "two") / name).write_text("{")
    with says(JobError), open_job(tmp_path / "two", PLAN):
        pass
    with open_job(tmp_path / "two", PLAN, overwrite=True) as job:
        assert not job.resumed


def test_work_that_was_stopped_under_another_state_of_the_code_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says
) -> None:
    """Before a release, both states have one version; the plan names the code of the folders that do the work."""

    def plan() -> Plan:
        return Plan("encode", {}, versions=versions("inference"))

    with pytest.raises(KeyboardInterrupt), open_job(tmp_path / "a", plan()) as job:
        (job.result / "half.npy").write_bytes(b"half")
        raise KeyboardInterrupt
    with open_job(tmp_path / "a", plan()) as job:
        assert job.resumed
        (job.result / "more.npy").write_bytes(b"more")
    monkeypatch.setattr("likewise.runs.releases._code", lambda rooms: "other")
    monkeypatch.setattr("likewise.runs.releases.version", lambda package: "1.0.0rc1" if package == "likewise" else "1")
    with says(JobError, hidden=r"(?<=code )[0-9a-f]{8}"), open_job(tmp_path / "a", plan()):
        pass
    assert versions()["likewise"] == "1.0.0rc1"
    monkeypatch.setattr("likewise.runs.releases.version", lambda package: "1.0.0")
    assert versions("inference")["likewise"] == "1.0.0"  # a release is one state of the code
