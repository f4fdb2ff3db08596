import pytest

from likewise.cli import weaknesses
from likewise.data.bundled import BundledError

pytest.importorskip("cwe2", reason="needs the extra 'bundled'")


def test_the_list_has_descriptions_parents_and_reports():
    listed = weaknesses.read_weaknesses()
    assert len(listed) > 900
    scripting = next(weakness for weakness in listed if weakness.id == "79")
    assert scripting.name.startswith("Improper Neutralization of Input During Web Page Generation")
    assert scripting.parent == "74"
    assert len(scripting.reports) > 5
    text = " ".join(part for weakness in listed for part in weakness.described + weakness.avoided)
    reports = {report for weakness in listed for report in weakness.reports}
    assert sum(report in text for report in reports) < 5  # a few were written from the description
    assert len(reports) > 2000


def test_the_package_is_named_where_it_is_missing(monkeypatch, says):
    monkeypatch.setattr(weaknesses.util, "find_spec", lambda name: None)
    with says(BundledError):
        weaknesses.read_weaknesses()
