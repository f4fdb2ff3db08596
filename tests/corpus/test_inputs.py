"""What is given as text: files by their names, or texts and rows, which are read from a file of their own."""

import datetime
import decimal
import json
import subprocess
import sys

import numpy as np
import pytest

from likewise.corpus import CorpusError, CorpusOptions
from likewise.corpus.inputs import given_texts


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))


def rows_of(given):
    return [json.loads(line) for line in given.path.read_text(encoding="utf-8").splitlines()]


def test_names_are_files_and_other_strings_are_texts(write, tmp_path):
    one, two = write("one.txt", "x"), write("two.md", "x")
    for files in (one, str(one), [one, two], [str(one), str(two)], (str(one),), tmp_path.glob("*.txt")):
        assert not given_texts(files).in_memory
    assert given_texts([str(one), two]).entries == [str(one), two]
    assert not given_texts(["none.txt", "nor.txt"]).in_memory, "names that are not there are an error of their own"
    assert not given_texts([str(tmp_path / "*.md"), "bundled:wiki-sample"]).in_memory
    for texts in (["One text.", "Another"], ("a", "b"), iter(["a text"]), np.array(["a text", "b"])):
        assert given_texts(texts).in_memory


def test_texts_are_rows_of_a_file_that_is_called_by_what_they_say():
    given = given_texts(text for text in ("It rains.", "Two\nlines, 'quoted'", "Ünïcode", ""))
    assert [(row["_id"], row["text"]) for row in rows_of(given)] == [
        (0, "It rains."), (1, "Two\nlines, 'quoted'"), (2, "Ünïcode"), (3, ""),
    ]  # fmt: skip
    assert (given.options.field, given.count, given.rows, given.names) == ("text", 4, False, ["4 texts"])
    same = given_texts(["It rains.", "Two\nlines, 'quoted'", "Ünïcode", ""])
    assert same.path == given.path
    assert given_texts(["It rains."]).path != given.path
    assert rows_of(given_texts(["It rains."], first=7))[0]["_id"] == 7


def test_a_text_that_is_a_sentence_is_a_line():
    given = given_texts(["One two three. Four five six.", "Seven\neight nine"], CorpusOptions(split="line"))
    assert given.path.read_text() == "One two three. Four five six.\nSeven eight nine\n"
    assert given.options.field is None


def test_rows_keep_their_fields_and_ids():
    day = datetime.date(2024, 5, 1)
    rows = [
        {"id": "a", "body": "It rains.", "year": np.int64(2004), "day": day, "share": float("nan"), "new": True},
        {"id": "b", "body": "It snows.", "year": 2005, "day": datetime.datetime(2024, 5, 1, 12), "tags": ["x"]},
    ]
    given = given_texts(rows, CorpusOptions(field="body"))
    first, second = rows_of(given)
    assert first == {
        "_id": "a", "id": "a", "body": "It rains.", "year": 2004, "day": "2024-05-01", "share": None, "new": True,
    }  # fmt: skip
    assert (second["_id"], second["day"], second["tags"]) == ("b", "2024-05-01T12:00:00", ["x"])
    assert (given.rows, given.options.field) == (True, "body")


@pytest.mark.parametrize(("library", "kind"), [("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")])
def test_a_data_frame_is_rows_and_its_column_is_texts(library, kind):
    frame = getattr(pytest.importorskip(library), kind)(
        {"id": [3, 4], "text": ["It rains.", "It snows."], "year": [2004, 2005]}
    )
    assert rows_of(given_texts(frame)) == [
        {"_id": 3, "id": 3, "text": "It rains.", "year": 2004},
        {"_id": 4, "id": 4, "text": "It snows.", "year": 2005},
    ]
    assert [row["text"] for row in rows_of(given_texts(frame["text"]))] == ["It rains.", "It snows."]


def test_columns_of_every_type_are_values_of_json():
    pa, day = pytest.importorskip("pyarrow"), datetime.datetime(2024, 5, 1, 10)
    columns = {
        "text": pa.array(["It rains.", "It snows."]).dictionary_encode(),
        "price": pa.array([decimal.Decimal("1.10"), None]),
        "day": pa.array([day, None], pa.timestamp("ns", "Europe/Berlin")),
        "share": pa.array([float("nan"), 0.5]),
        "tags": pa.array([["a", None], None]),
        "sort": pa.array(["x", None], pa.large_string()).dictionary_encode(),
        "none": pa.nulls(2),
    }
    first, second = rows_of(given_texts(pa.table(columns)))
    assert first == {
        "_id": 0, "text": "It rains.", "price": 1.1, "day": day.isoformat(), "share": None, "tags": ["a", None],
        "sort": "x", "none": None,
    }  # fmt: skip
    assert second == dict.fromkeys(columns) | {"_id": 1, "text": "It snows.", "share": 0.5}


@pytest.mark.parametrize(
    ("library", "make", "words"),
    [
        ("pandas", lambda pd: pd.Series(["It rains.", pd.NA], dtype="string"), r"texts\[1\] is missing"),
        ("pandas", lambda pd: pd.DataFrame({"text": pd.Categorical(["a b", None])}), r"rows\[1\]\['text'\] is missing"),
        ("polars", lambda pl: pl.Series([["a"], ["b"]]), r"texts\[0\] is of type Series"),
        ("pyarrow", lambda pa: pa.array(["It rains.", None]).dictionary_encode(), r"texts\[1\] is missing"),
        ("pyarrow", lambda pa: pa.table({"text": [["a"]]}), r"rows\[0\]\['text'\] is of type list"),
    ],
)
def test_what_is_no_text_in_a_column_is_named_with_its_row(library, make, words):
    with pytest.raises(CorpusError, match=words):
        given_texts(make(pytest.importorskip(library)))


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_columns_of_one_name_are_all_kept(library):
    if library == "pandas":
        frame = pytest.importorskip("pandas").DataFrame([["It rains.", 1, 2]], columns=["text", "a", "a"])
    else:
        frame = pytest.importorskip("pyarrow").table([["It rains."], [1], [2]], names=["text", "a", "a"])
    assert rows_of(given_texts(frame)) == [{"_id": 0, "text": "It rains.", "a": 1, "a 3": 2}]


@pytest.mark.parametrize(
    "given",
    [
        "It rains a lot.",
        3,
        {"text": "a"},
        [],
        ["a text", 3],
        ["a text", None],
        [{"text": "a"}, "b"],
        [{"body": "a"}],
        [{"id": 1.5, "text": "a"}],
        [{"id": 1, "text": "a"}, {"text": "b"}],
        [{"text": "a"}, {"id": 1, "text": "b"}],
        [{"id": i % 3, "text": "a"} for i in range(4)],
    ],
)
def test_what_is_no_text_is_an_error_of_one_sentence(given, says):
    with says(CorpusError):
        given_texts(given)


def test_files_and_texts_together_are_an_error_that_names_both(write, tmp_path, monkeypatch, says):
    write("notes/a.txt", "x")
    monkeypatch.chdir(tmp_path)
    with says(CorpusError):
        given_texts(["It rains... " * 9, "notes"])
    with says(CorpusError):
        given_texts(["notes", "nots"])
    assert given_texts([{"text": "notes"}, {"text": "nots"}]).in_memory


_MANY_TEXTS = """
import tracemalloc
from likewise.corpus.inputs import given_texts

given_texts(f"Text {i}." for i in range(10))  # what is loaded once is not counted
tracemalloc.start()
given = given_texts(f"Text {i}, and what it says about the rain and the river." for i in range(20_000))
print(given.count, tracemalloc.get_traced_memory()[1], given.path.stat().st_size)
"""


def test_memory_does_not_grow_with_the_number_of_texts():
    # In a process of its own: what another test's thread takes meanwhile would be counted as well.
    printed = subprocess.run([sys.executable, "-c", _MANY_TEXTS], check=True, capture_output=True, text=True).stdout
    count, peak, written = map(int, printed.split())
    assert count == 20_000
    assert peak < 1_000_000 < written
