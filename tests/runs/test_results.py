import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from likewise.cli import build_app
from likewise.runs.job import Plan, check_target, open_job
from likewise.runs.results import JobError, check_results, note_results, read_record, written_result


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def theirs(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    return tmp_path / "thesis.txt"


def write(path, text, overwrite=False):
    with written_result(path, overwrite) as unfinished:
        unfinished.write_text(text)


def test_a_file_that_likewise_did_not_write_stays_unless_it_may_be_replaced(theirs, says):
    with says(JobError):
        write(theirs, "ours")
    assert theirs.read_text() == "precious"
    write(theirs, "ours", overwrite=True)
    write(theirs, "ours again")
    assert theirs.read_text() == "ours again"


def test_a_result_that_was_edited_since_is_not_ours_any_more(tmp_path):
    path = tmp_path / "a.txt"
    write(path, "ours")
    write(path, "ours")
    path.write_text("their")  # of the same size
    os.utime(path, ns=(1, 1))
    with pytest.raises(JobError):
        write(path, "ours")
    path.rename(tmp_path / "b.txt")
    write(path, "ours")
    assert (tmp_path / "b.txt").read_text() == "their"


def test_what_comes_while_a_result_is_made_stays(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(JobError), written_result(path) as unfinished:
        unfinished.write_text("ours")
        path.write_text("precious")
    assert path.read_text() == "precious"
    assert [one.name for one in tmp_path.iterdir() if one.suffix == ".part"] == []


def test_an_empty_file_may_be_replaced_and_a_link_never_is(tmp_path, theirs, says):
    (tmp_path / "empty").touch()
    write(tmp_path / "empty", "ours")
    for name, to in (("a", theirs), ("b", tmp_path / "empty"), ("c", tmp_path / "nothing")):
        (tmp_path / name).symlink_to(to)
        for overwrite in (False, True):
            with says(JobError):
                write(tmp_path / name, "ours", overwrite)
    assert theirs.read_text() == "precious"


def test_devices_pipes_and_folders_are_never_replaced(tmp_path, says):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/null", "/dev/stdout", tmp_path, tmp_path / "pipe", "", "a\0b"):
        for overwrite in (False, True):
            with says(JobError):
                check_results(path, overwrite=overwrite)
    with says(JobError):
        check_results(tmp_path / "no" / "a.txt")


def test_two_results_are_two_files(tmp_path, says):
    check_results(tmp_path / "a", None, tmp_path / "b")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    with says(JobError):
        check_results(tmp_path / "folder" / "a", tmp_path / "link" / "a", overwrite=True)


def test_a_job_whose_target_is_a_file_keeps_the_promise(theirs):
    with pytest.raises(JobError), open_job(theirs, Plan("encode", {}), kind="file"):
        raise AssertionError("the work must not begin")
    with pytest.raises(JobError), open_job(theirs.with_name("b.txt"), Plan("encode", {}), kind="file") as job:
        job.result.write_text("ours")
        theirs.rename(theirs.with_name("b.txt"))  # in the meantime
        job.finish()
    assert theirs.with_name("b.txt").read_text() == "precious"
    with open_job(theirs, Plan("encode", {}), kind="file") as job:
        job.result.write_text("ours")
        job.finish()
    check_target(theirs, "file")


def test_a_working_folder_is_no_link(tmp_path, says):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "a.txt").write_text("precious")
    (tmp_path / ".b.txt.unfinished").symlink_to(tmp_path / "precious")
    with says(JobError), open_job(tmp_path / "b.txt", Plan("encode", {}), kind="file"):
        pass
    assert [path.name for path in (tmp_path / "precious").iterdir()] == ["a.txt"]


def test_another_process_knows_what_this_one_wrote(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    note_results(tmp_path / "a.txt")
    code = "import sys\nfrom likewise.runs.results import check_results\ncheck_results(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.txt")], check=True)


COMMANDS = {
    "evaluate": ("evaluate", "nothing", "--json", "FILE"),
    "encode": ("encode", "nothing", "TEXT", "--out", "FILE.npy"),
    "negate": ("negate", "TEXT", "--out", "FILE"),
    "sections": ("sections", "TEXT", "--out", "FILE"),
    "duplicates, groups": ("duplicates", "TEXT", "--out", "FILE"),
    "duplicates, kept": ("duplicates", "TEXT", "--keep-one", "FILE"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_command_keeps_the_files_of_others(tmp_path, command):
    (tmp_path / "text.txt").write_text("The pump leaks.\nThe fan is loud.\n")
    names = ("file", "file.npy", "folder/similarity.json", "folder/errors.json")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("precious")
    given = {"FILE": "file", "FILE.npy": "file.npy", "TEXT": "text.txt", "FOLDER": "folder"}
    done = CliRunner().invoke(build_app(), [str(tmp_path / given[word]) if word in given else word for word in command])
    assert done.exit_code == 2
    assert "--overwrite" in done.output
    assert {name: (tmp_path / name).read_text() for name in names} == dict.fromkeys(names, "precious")


def test_a_result_is_known_without_the_cache_and_beside_it(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    folder.mkdir()
    write(folder / "a.txt", "ours")
    (folder / "b.txt").write_text("precious")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "another"))
    write(folder / "a.txt", "ours again")
    with pytest.raises(JobError):
        write(folder / "b.txt", "ours")
    (folder / ".a.txt.likewise").write_text("{")  # cut short
    with pytest.raises(JobError):
        write(folder / "a.txt", "ours")


def test_a_record_that_may_not_be_read_is_not_damaged(tmp_path, monkeypatch, says):
    (tmp_path / "likewise.json").write_text("{}")

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied", str(tmp_path / "likewise.json"))

    with says(JobError):
        read_record(tmp_path)
    monkeypatch.setattr(Path, "read_text", refused)
    with says(JobError):
        read_record(tmp_path)
