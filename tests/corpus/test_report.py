"""Counts and places."""

from likewise.corpus import CorpusReport


def test_only_the_first_five_places_are_kept():
    report = CorpusReport()
    for line in range(1, 9):
        report.drop("too long", "f.txt", line)
    assert report.dropped == {"too long": 8}
    assert report.examples == {"too long": [f"f.txt:{line}" for line in range(1, 6)]}
    assert str(report).endswith("f.txt:5, ...")


def test_one_line_is_named_once():
    report = CorpusReport()
    for _ in range(3):
        report.drop("markup", "dump.xml", 4)
    assert report.examples == {"markup": ["dump.xml:4"]}


def test_round_trip():
    report = CorpusReport(read=3, kept=2, files={"a": "line"})
    report.drop("empty", "a", 1)
    assert CorpusReport.from_dict(report.to_dict()) == report
