import json

import pytest

from likewise.corpus import CorpusError
from likewise.corpus.documentation import write_documentation

_MODULE = '''
def root(f):
    """Find a root of a function of one variable, between two ends of an interval.

    The function must change its sign, :func:`brent` says more about ``that``.

    Parameters
    ----------
    f : callable

    See Also
    --------
    tiny.newton : a faster way that needs the derivative
    short : too short
    missing : a function that is not there at all
    """


def newton(f):
    """Find a root of a function with its derivative, from a start that is near.

    .. versionadded:: 1.0

    See Also
    --------
    root
        A slower way that needs
        no derivative at all.
    """


def _hidden():
    """Do what nobody outside of this module ever needs to know anything about, in twelve words."""


def short():
    """Too short."""
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    for place in ("documented_package", "documented_package/tests"):
        folder = tmp_path / place
        folder.mkdir()
        (folder / "__init__.py").write_text(_MODULE if place.endswith("package") else "raise RuntimeError\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "documented_package"


def _rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_descriptions_are_the_text_and_see_also_asks(package, tmp_path):
    assert write_documentation(package, tmp_path / "text") == (2, 2)
    documents = {row["title"]: row for row in _rows(tmp_path / "text" / "corpus.jsonl")}
    assert documents["root"]["text"] == (
        "Find a root of a function of one variable, between two ends of an interval.\n\n"
        "The function must change its sign, brent says more about that."
    )
    assert documents["newton"]["text"].endswith("from a start that is near.")
    asked = {row["_id"]: row["text"] for row in _rows(tmp_path / "text" / "queries.jsonl")}
    judged = [line.split("\t") for line in (tmp_path / "text" / "qrels" / "test.tsv").read_text().splitlines()]
    assert {(asked[query], place) for query, place, _ in judged} == {
        ("a faster way that needs the derivative", documents["newton"]["_id"]),
        ("A slower way that needs no derivative at all.", documents["root"]["_id"]),
    }


def test_a_missing_package_is_named(tmp_path):
    with pytest.raises(CorpusError, match="pip install no_such_package"):
        write_documentation("no_such_package", tmp_path)


def test_a_package_without_descriptions_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "__init__.py").write_text("")
    with pytest.raises(CorpusError, match="bare has no docstrings"):
        write_documentation("bare", tmp_path / "text")
