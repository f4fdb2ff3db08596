import platform

from likewise.runs.releases import machine, versions


def test_versions_and_machine_say_what_a_result_depends_on():
    assert versions()["python"] == platform.python_version()
    assert versions()["sentence-transformers"][0].isdigit()
    assert machine()["cores"] >= 1
