import shutil

from likewise.training.training_result import base_fingerprint


def test_a_base_is_known_by_its_weights_and_not_by_when_it_was_written(tiny_model, tmp_path):
    tiny_model.save_pretrained(str(tmp_path / "a"))
    shutil.copytree(tmp_path / "a", tmp_path / "b", copy_function=shutil.copyfile)  # with other times
    (tmp_path / "b" / "README.md").write_text("other words")
    (tmp_path / "b" / ".unfinished" / "result").mkdir(parents=True)
    (tmp_path / "b" / ".unfinished" / "result" / "config.json").write_text("{}")
    assert base_fingerprint(str(tmp_path / "a")) == base_fingerprint(str(tmp_path / "b"))
    weights = tmp_path / "b" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert base_fingerprint(str(tmp_path / "a")) != base_fingerprint(str(tmp_path / "b"))
    assert base_fingerprint("bundled:glove") == "bundled:glove"
