"""An index of texts and rows: made in Python, added to, deleted from, and searched under conditions on their fields."""

import datetime
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import likewise
from likewise.cli import build_app
from likewise.corpus import CorpusError
from likewise.searching import SearchError
from likewise.searching.index.fields import kinds_of


@pytest.fixture(scope="module")
def rows(sentences):
    """40 rows with fields of every kind."""
    return [
        {
            "id": f"r{i}",
            "text": sentences[i],
            "year": 2000 + i,
            "share": i / 40,
            "new": i % 2 == 0,
            "kind": "even" if i % 2 == 0 else "it's odd",
            "day": datetime.date(2024, 1, 1) + datetime.timedelta(days=i),
            "source": f"s{i % 4}",  # a name that the table has, too
        }
        for i in range(40)
    ]


@pytest.fixture(scope="module")
def read(rows, saved_model, tmp_path_factory):
    """An index that is only searched."""
    return likewise.index(rows, model=saved_model, out=tmp_path_factory.mktemp("rows") / "rows.index", quiet=True)


@pytest.fixture
def made(rows, saved_model, tmp_path):
    return likewise.index(rows, model=saved_model, out=tmp_path / "rows.index", quiet=True)


def held(index):
    """The passages of an index by id: text, vector, and the cosines of the nearest others."""
    rows = index.table._select(["id", "text", "vector"], with_ids=True).to_pylist()
    place = {int(row): i for i, row in enumerate(index._opened.stored.geometry.rows)}
    near = index._opened.stored.geometry.similarity
    return {row["id"]: (row["text"], row["vector"], near[place[row["_rowid"]]]) for row in rows}


def same(one, other):
    found, wanted = held(one), held(other)
    assert found.keys() == wanted.keys()
    for id, (text, *numbers) in wanted.items():
        assert found[id][0] == text
        for now, then in zip(found[id][1:], numbers, strict=True):
            np.testing.assert_allclose(now, then, atol=1e-4)


def test_rows_are_found_with_their_ids_and_fields(read, rows):
    hit = read.search(rows[7]["text"], k=1)[0]
    assert (hit.id, hit.text, hit.file, hit.place) == ("r7", rows[7]["text"], "", "r7")
    assert hit.metadata == {**{name: rows[7][name] for name in hit.metadata}, "day": "2024-01-08"}
    assert set(hit.metadata) == {"year", "share", "new", "kind", "day", "source"}
    assert json.loads(json.dumps(hit.to_dict()))["metadata"]["new"] is False
    assert (len(read), read.passages, read.files, set(read)) == (40, 40, 0, {f"r{i}" for i in range(40)})
    assert "40 passages" in repr(read)


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("year >= 2030", range(30, 40)),
        ("year BETWEEN '2003' AND 2005", range(3, 6)),
        ("share < 0.1", range(4)),
        ("new = true AND year < 2005", (0, 2, 4)),
        ("kind = 'it''s odd' AND year < 2005", (1, 3)),
        ("day < '2024-01-04'", range(3)),
        ("source = 's1' AND id IN ('r1', 'r5', 'r6')", (1, 5)),
        ("year IS NULL", ()),
    ],
)
def test_conditions_compare_numbers_texts_dates_and_what_is_true(read, where, wanted):
    for mode in ("hybrid", "vectors"):
        hits = read.search("the", k=40, mode=mode, where=where)
        assert {hit.id for hit in hits} == {f"r{i}" for i in wanted}


def test_adding_and_deleting_leave_the_index_that_is_made_at_once(rows, saved_model, tmp_path, sentences):
    index = likewise.index(rows[:30], model=saved_model, out=tmp_path / "a.index", quiet=True)
    changed = {**rows[3], "text": sentences[50], "year": 1999}
    assert index.add([*rows[30:], changed]) == 11
    assert index.add(rows[35:38]) == 0, "they are there"
    assert index.delete(["r5", "r39", "none"]) == 2
    assert index.delete("none") == 0
    wanted = [changed if row is rows[3] else row for row in rows if row["id"] not in ("r5", "r39")]
    at_once = likewise.index(wanted, model=saved_model, out=tmp_path / "b.index", quiet=True)
    same(index, at_once)
    assert [hit.id for hit in index.search(sentences[50], k=1)] == ["r3"]
    assert index.search("the", k=50, where="id = 'r5'") == []
    weights = index._opened.stored.codec.weights if index._opened.stored.codec else np.zeros(0)
    np.testing.assert_allclose(
        weights, at_once._opened.stored.codec.weights if at_once._opened.stored.codec else weights
    )
    again = likewise.index(wanted, out=tmp_path / "a.index", quiet=True)
    assert (again.encoded, again.added, again.removed) == (0, 0, 0)


def test_texts_are_called_by_their_places_and_added_ones_by_the_next(sentences, saved_model, tmp_path):
    index = likewise.index(sentences[:20], model=saved_model, out=tmp_path / "a.index", quiet=True)
    assert index.search(sentences[7], k=1)[0].id == 7
    assert index.add(text for text in sentences[20:25]) == 5
    assert set(index) == set(range(25))
    assert index.search(sentences[22], k=1)[0].id == 22
    assert index.delete([7, 22]) == 2
    fewer = likewise.index(sentences[:10], out=tmp_path / "a.index", quiet=True)
    assert (fewer.passages, fewer.encoded, fewer.removed) == (10, 1, 14), "the one that was deleted is encoded again"
    assert index.add({"id": "named", "text": sentences[30]} for _ in range(1)) == 1
    assert index.search(sentences[30], k=1)[0].id == "named"
    assert set(index) == {*map(str, range(10)), "named"}


def test_a_new_field_is_a_field_from_then_on(made, sentences, says):
    made.add([{"id": "x", "text": sentences[60], "author": "Ada", "year": 1850}])
    assert made.fields["author"] == "strings"
    assert [hit.id for hit in made.search("the", where="author = 'Ada'")] == ["x"]
    with says(CorpusError):
        made.add([{"id": "y", "text": sentences[61], "year": "soon"}])
    assert len(made) == 41


def test_everything_can_be_deleted_and_something_added(made, rows):
    assert made.delete(list(made)) == 40
    assert len(made) == 0
    assert made.search("the cat") == []
    assert made.add(rows[:2]) == 2
    assert made.search(rows[1]["text"], k=1)[0].id == "r1"


def test_files_and_texts_are_in_one_index(notes, saved_model, sentences, tmp_path):
    index = likewise.index(notes, model=saved_model, out=tmp_path / "a.index", quiet=True)
    assert index.add([{"id": "mine", "text": "a zebra"}]) == 1
    assert (len(index), index.files, list(index)) == (43, 2, ["mine"])
    assert index.search("zebra", mode="words")[0].id == "mine"
    kept = likewise.index(notes, out=tmp_path / "a.index", keep=True, quiet=True)
    assert (kept.passages, kept.encoded) == (43, 0)
    assert index.add(notes / "heads.md") == 0
    mirrored = likewise.index(notes, out=tmp_path / "a.index", quiet=True)
    assert (mirrored.passages, mirrored.removed) == (42, 1)


def test_rows_of_a_file_have_ids_and_fields_and_come_back_with_the_file(rows, saved_model, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))
    options = likewise.CorpusOptions(field="text")
    index = likewise.index(path, model=saved_model, out=tmp_path / "a.index", corpus_options=options, quiet=True)
    hit = index.search(rows[4]["text"], k=1, where="year < 2010 AND new = true")[0]
    assert (hit.id, hit.line, hit.metadata["year"], hit.metadata["new"]) == ("r4", 5, 2004, True)
    assert index.delete(["r4"]) == 1
    assert index.search("the", k=40, where="id = 'r4'") == []
    again = likewise.index(path, out=tmp_path / "a.index", corpus_options=options, quiet=True)
    assert (again.passages, again.encoded) == (40, 1)
    csv = tmp_path / "rows.csv"
    csv.write_text(
        "text,year,code,open\n" + "".join(f"{row['text']},{row['year']},0{i},true\n" for i, row in enumerate(rows))
    )
    table = likewise.index(csv, model=saved_model, out=tmp_path / "c.index", corpus_options=options, quiet=True)
    assert table.fields == {"year": "integers", "code": "strings", "open": "Booleans"}
    assert {hit.metadata["code"] for hit in table.search("the", where="year = 2003 AND open = true")} == {"03"}


def test_a_stopped_run_of_texts_is_resumed(sentences, saved_model, tmp_path, after_two_windows):
    out, texts = tmp_path / "a.index", sentences[:60]
    with after_two_windows():
        likewise.index(iter(texts), model=saved_model, out=out, quiet=True)
    rest = likewise.index(iter(texts), model=saved_model, out=out, quiet=True)
    assert (rest.passages, rest.added) == (60, 28)
    same(rest, likewise.index(texts, model=saved_model, out=tmp_path / "b.index", quiet=True))


def test_an_index_goes_on_with_a_model_that_has_no_name(sentences, saved_model, tmp_path):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(saved_model))
    index = likewise.index(sentences[:10], model=model, out=tmp_path / "a.index", quiet=True)
    assert index.add(sentences[10:12]) == 2
    assert index.search(sentences[11], k=1)[0].id == 11


@pytest.mark.parametrize("page", ["guides/search", "get-started"])
def test_the_examples_of_the_documentation_run(page, saved_model, tmp_path, monkeypatch, capsys):
    text = (Path(__file__).parents[2] / f"docs/{page}.md").read_text(encoding="utf-8")
    blocks = [one for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "index.add(" in one]
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(block.replace('"bundled:minilm"', repr(str(saved_model))), names := {})
        assert len(names["index"]) in (2, 3)
    printed = capsys.readouterr().out
    assert re.search("pump|valve|boiler", printed)
    assert page != "guides/search" or ("b2" in printed and "'year': 2024" in printed and "c3" not in printed)


def test_the_command_line_has_the_same_fields_and_ids(rows, saved_model, tmp_path):
    path, out = tmp_path / "rows.jsonl", str(tmp_path / "a.index")
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))
    run = CliRunner().invoke
    made = run(
        build_app(), ["index", str(path), "--field", "text", "--model", str(saved_model), "--out", out, "--quiet"]
    )
    assert made.exit_code == 0, made.output
    found = run(build_app(), ["search", out, rows[8]["text"], "--where", "year BETWEEN 2007 AND 2009", "--json"])
    hits = json.loads(found.output)["hits"]
    assert {hit["id"] for hit in hits} == {"r7", "r8", "r9"}
    assert hits[0]["metadata"]["day"] == "2024-01-09"


@pytest.mark.parametrize(
    "call",
    [
        lambda index: index.delete([1.5]),
        lambda index: index.search("a", where="year = 'soon'"),
        lambda index: index.search("a", where="year LIKE '20%'"),
        lambda index: index.search("a", where="new = 3"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(read, call, says):
    with says(SearchError):
        call(read)


def test_the_kind_of_a_field_fits_all_its_values(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"text": "a", "a": 1, "b": true, "c": 1, "d": "x", "e": [1], "f": null, "g": 1, "title": "t", "h i": 1, '
        '"day": "2024-05-01", "then": "2024-05-01T10:00:00+02:00", "n": {"x": 1}, "late": 3}\n'
        '{"text": "b", "a": 2.5, "b": false, "c": "x", "d": "y", "e": ["p", 2], "f": null, "day": "2024-05-02", '
        '"then": "2024-05-02", "late": "N/A", "long": "' + "x" * 300 + '"}\n'
    )
    options = likewise.CorpusOptions(field="text")
    kinds = {"a": "float", "b": "bool", "c": "text", "d": "text", "e": "list", "g": "int", "h i": "int"}
    dates = {"day": "date", "then": "date", "late": "int"}
    kept, left_out = kinds_of([path], options, None, ("g",))
    assert kept == {name: kind for name, kind in kinds.items() if name != "g"} | dates
    assert left_out.keys() == {"n", "long", "g"}
    assert kinds_of([path], options, ("a", "none"), ()) == ({"a": "float"}, {})


def test_fields_that_are_not_kept_are_told(saved_model, tmp_path):
    rows = [{"text": f"the cat {i}", "file": "a.pdf", "by": {"name": "x"}, "notes": "y " * 200} for i in range(2)]
    (told,) = likewise.index(rows, model=saved_model, out=tmp_path / "rows.index", quiet=True).skipped
    assert all(f" {name} (" in told for name in ("file", "by", "notes"))
    assert " text (" not in told


def test_no_id_comes_twice(saved_model, tmp_path):
    made = likewise.index(["one cat", "two rats", ""], model=saved_model, out=tmp_path / "a.index", quiet=True)
    made.add(["three fish"])
    assert {hit.id: hit.text for hit in made.search("fish")}[3] == "three fish"  # 2 is the place of the empty text
    made.delete([3])
    made.add(["four birds"])
    assert {hit.id: hit.text for hit in made.search("birds")}[4] == "four birds"


def test_lists_and_ids_of_a_data_frame_stay(saved_model, tmp_path, says):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["a7", "b2"], "text": ["the cat", "a dog"], "tags": [np.array(["x", "y"]), []]})
    made = likewise.index(frame.set_index("id"), model=saved_model, out=tmp_path / "frame.index", quiet=True)
    for where, wanted in (("tags = 'x'", {"a7"}), ("NOT tags = 'x'", {"b2"}), ("tags NOT IN ('z')", {"a7", "b2"})):
        assert {hit.id for hit in made.search("the cat", where=where)} == wanted, where
    again = pickle.loads(pickle.dumps(made))
    assert [hit.id for hit in again.search("the cat")] == [hit.id for hit in made.search("the cat")]
    with says(CorpusError):
        likewise.index(np.array([["a", "b"]]), model=saved_model, out=tmp_path / "other.index", quiet=True)
