import json
import re

import pytest

from likewise.corpus import CorpusError, weaknesses

pytest.importorskip("cwe2", reason="needs the extra 'bundled'")


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_reports_are_judged_and_not_in_the_text(tmp_path):
    found = weaknesses.read_weaknesses()
    scripting = next(one for one in found if one.id == "79")
    assert scripting.name.startswith("Improper Neutralization of Input During Web Page Generation")
    assert scripting.parent == "74"
    assert len(scripting.reports) > 5
    count, reports = weaknesses.write_weaknesses(tmp_path)
    assert count == len(found) > 900
    assert reports == len({report for one in found for report in one.reports}) > 2000
    text = " ".join(row["text"] for row in rows(tmp_path / "text.jsonl"))
    asked = {row["_id"]: row["text"] for row in rows(tmp_path / "reports" / "queries.jsonl")}
    assert sum(report in text for report in asked.values()) < 5  # a few were written from the description
    ids = {row["_id"] for row in rows(tmp_path / "reports" / "corpus.jsonl")}
    for line in (tmp_path / "reports" / "qrels" / "test.tsv").read_text().splitlines():
        query, weakness, grade = line.split("\t")
        assert (query in asked, weakness in ids, grade) == (True, True, "1")
        assert re.fullmatch(r"\d+", weakness)


def test_the_package_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setattr(weaknesses, "find_spec", lambda name: None)
    with pytest.raises(CorpusError, match=r"pip install .likewise\[bundled\]"):
        weaknesses.read_weaknesses()
