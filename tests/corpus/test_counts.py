"""Counts and places."""

from likewise.corpus import CorpusReport


def test_only_the_first_five_places_are_kept():
    report = CorpusReport()
    for line in range(1, 9):
        report.drop("too long", "f.txt", line)
    assert report.dropped == {"too long": 8}
    assert report.examples == {"too long": [f"f.txt:{line}" for line in range(1, 6)]}
    assert str(report).endswith("lines 1, 2, 3, 4, 5, ...")
    report.drop("empty", "folder/g.txt", 3)
    assert str(report).splitlines()[-2:] == [
        "too long             8  f.txt:1, 2, 3, 4, 5, ...",
        "empty                1  g.txt:3",
    ]


def test_one_line_is_named_once():
    report = CorpusReport()
    for _ in range(3):
        report.drop("markup", "dump.xml", 4)
    assert report.examples == {"markup": ["dump.xml:4"]}


def test_round_trip():
    report = CorpusReport(kept=2, files={"a": "line"})
    report.drop("empty", "a", 1)
    facts = report.to_dict()
    assert facts.pop("read") == report.read == 3
    assert CorpusReport(**facts) == report
