import platform

import pytest

from likewise.training.provenance import machine, read_json, versions, write_json


def test_versions_and_machine_say_what_a_result_depends_on():
    assert versions()["python"] == platform.python_version()
    assert versions()["sentence-transformers"][0].isdigit()
    assert machine()["cores"] >= 1


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "record.json"
    write_json(path, {"name": "é"})
    with pytest.raises(TypeError):
        write_json(path, {"name": object()})
    assert read_json(path) == {"name": "é"}
