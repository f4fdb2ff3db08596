import pytest

from likewise.training.folder import RunFolder, RunFolderError


def checkpoint(folder, step, whole=True):
    made = folder / "checkpoints" / f"checkpoint-{step}"
    made.mkdir(parents=True)
    if whole:
        (made / "trainer_state.json").write_text("{}")
    return made


def test_the_last_whole_checkpoint_is_taken_by_number(tmp_path):
    checkpoint(tmp_path, 90)
    newest = checkpoint(tmp_path, 100)
    checkpoint(tmp_path, 110, whole=False)  # cut off by a kill
    (tmp_path / "checkpoints" / "other").mkdir()
    assert RunFolder(tmp_path).last_checkpoint() == newest
    assert RunFolder(tmp_path).prepare(resume=True, overwrite=False) == newest


def test_what_is_there_is_never_lost_by_accident(tmp_path):
    folder = RunFolder(tmp_path / "run")
    assert folder.prepare(resume=False, overwrite=False) is None
    folder.write_record({"seed": 1})
    with pytest.raises(RunFolderError, match="--overwrite"):
        folder.prepare(resume=False, overwrite=False)
    assert folder.read_record() == {"seed": 1}
    folder.prepare(resume=False, overwrite=True)
    assert folder.read_record() == {}
    (folder.path / "thesis.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="another --out"):
        folder.prepare(resume=False, overwrite=True)
    assert (folder.path / "thesis.txt").exists()


def test_nothing_to_resume(tmp_path):
    with pytest.raises(RunFolderError, match="no checkpoint"):
        RunFolder(tmp_path / "new").prepare(resume=True, overwrite=False)
    checkpoint(tmp_path, 10)
    (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(RunFolderError, match="finished"):
        RunFolder(tmp_path).prepare(resume=True, overwrite=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="is a file"):
        RunFolder(tmp_path / "file").prepare(resume=False, overwrite=False)


def test_a_model_is_moved_in_whole_and_leaves_the_rest(tmp_path, tiny_model):
    folder = RunFolder(tmp_path)
    folder.write_record({"seed": 1})
    for _ in range(2):  # a second time over the first
        folder.install_model(tiny_model)
    assert folder.is_finished
    assert folder.read_record() == {"seed": 1}
    assert not (tmp_path / ".model").exists()
    assert (tmp_path / "1_Pooling" / "config.json").exists()
