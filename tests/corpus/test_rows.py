"""Rows of every kind of file: their form is seen, and one that is none does not cost the others."""

import json
import os
import unicodedata
from datetime import datetime

import pytest

from likewise.corpus import CorpusError, CorpusOptions, CorpusReport, read_sentences
from likewise.corpus.csv_rows import csv_form
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.rows import read_rows, texts_of_rows
from likewise.corpus.sources import open_source
from likewise.corpus.text_lines import text_lines
from likewise.searching.index.fields import decimal_of

FIELD = CorpusOptions(field="text")


def rows(path, **options):
    """The rows of a file, with their lines, and what is told of others."""
    report = CorpusReport()
    source = open_source(path, CorpusOptions(field="text", **options), report=report)
    return list(read_rows(source)), report


def texts(path, **options):
    return [row["text"] for _, row in rows(path, **options)[0]]


@pytest.mark.parametrize(
    ("name", "content", "separator", "first"),
    [
        ("a.csv", "id;text;price\n1;A pump leaks, badly;3,50\n", ";", "A pump leaks, badly"),
        ("a.csv", "sep=;\nid;text\n1;Oil, hot\n", ";", "Oil, hot"),
        ("a.csv", "id|text\n1|Oil, hot; red\n", "|", "Oil, hot; red"),
        ("a.csv", "id\ttext\n1\tOil, hot\n", "\t", "Oil, hot"),
        ("a.csv", 'id,text\n1,"Oil; hot; red"\n2,Water\n', ",", "Oil; hot; red"),
        ("a.csv", "text\nOil, hot; red\n", ",", "Oil, hot; red"),
        ("a.csv", "text,id\rOil,1\rWater,2\r", ",", "Oil"),
        ("a.csv", 'text,id\r\n"Oil\r\nis hot",1\r\n', ",", "Oil\nis hot"),
        ("a.tsv", 'id\ttext\n1\t"Stop\n2\tgo"\n', "\t", '"Stop'),
        ("a.tsv", 'id\ttext\n1\t"Stop\nit"\n2\tgo\n', "\t", "Stop\nit"),
        ("a.tsv", 'id\ttext\n1\t"He said ""no"""\n', "\t", 'He said "no"'),
        ("a.tsv", "id;text\n1;Oil\n", ";", "Oil"),
        ("a.csv", 'id, "text"\n1, "Oil, ""hot"""\n', ",", 'Oil, "hot"'),
        ("a.csv", '"id"; "text"\n"1"; "Oil"\n', ";", "Oil"),
        ("a.csv", 'text\nHe said, "no"\n', ",", 'He said, "no"'),
    ],
)
def test_the_form_of_separated_values_is_seen(write, name, content, separator, first):
    path = write(name, content)
    assert csv_form(open_source(path, FIELD)).separator == separator
    assert texts(path)[0] == first


def test_a_separator_can_be_named(write):
    assert texts(write("a.csv", "id:text\n1:Oil, hot\n"), separator=":") == ["Oil, hot"]


def test_an_open_quote_costs_its_row_alone(write):
    path = write("a.csv", 'text,id\nOne,1\n"Two,2\nThree,3\n"Four, with a comma",4\n5" pipe,5\n')
    found, report = rows(path)
    assert [row["text"] for _, row in found] == ["One", "Three", "Four, with a comma", '5" pipe']
    assert [line for line, _ in found] == [2, 4, 5, 6]
    assert report.examples == {"bad row": [f"{path}:3"]}


def test_cells_beyond_the_header_are_told_and_columns_have_names_of_their_own(write):
    path = write("a.csv", "text,id,id,\nOne,1,2,3\nTwo,1,2,3,lost,too\nThree\n")
    found, report = rows(path)
    assert found[0] == (2, {"text": "One", "id": "1", "id 3": "2", "column 4": "3"})
    assert [row["text"] for _, row in found] == ["One", "Two", "Three"]
    assert len(report.messages) == 1
    assert report.messages[0].startswith(f"{path}:3: ")
    assert "lost too" in report.messages[0]


def test_lists_of_objects_in_any_layout(write):
    values = [{"text": f"Text {i} in {{braces}}, [brackets]", "n": i} for i in range(2000)]
    for name, content in {
        "a.json": json.dumps(values),
        "b.json": json.dumps(values, indent=2),
        "c.json": "\n\n".join(json.dumps(value, indent=1) for value in values),
        "d.jsonl": "\n".join(map(json.dumps, values)),
    }.items():
        found, report = rows(write(name, content))
        assert [row for _, row in found] == values, name
        assert report.messages == []
    assert [line for line, _ in rows(write("b.json", json.dumps(values, indent=2)))[0]][:3] == [2, 6, 10]


def test_a_list_of_texts_is_rows_with_a_text_alone(write):
    for content in ('["One [1]", "Two"]', '[\n "One [1]",\n "Two"\n]'):
        path = write("a.json", content)
        assert texts(path) == ["One [1]", "Two"]


def test_rows_of_one_line_that_have_no_text_are_all_counted(write):
    path = write("a.json", json.dumps([{"n": 1}, {"text": "One"}, {"n": 2}, 7, {"n": 3}]))
    report = CorpusReport()
    assert [text for _, _, text in texts_of_rows(open_source(path, FIELD, report=report))] == ["One"]
    assert len(report.messages) == 3
    assert report.messages[-1] == f"{path}: 2 more rows like these"


def test_where_no_field_is_a_text_its_fields_are_named(write, says):
    with says(CorpusError):
        open_source(write("a.json", '{"data": [{"text": "One"}], "n": 1}'), CorpusOptions())


@pytest.mark.parametrize(
    ("name", "content", "kept", "bad"),
    [
        ("a.jsonl", '{"text": "One"}\n{"text": "Tw', ["One"], 2),
        ("a.jsonl", '{"text": "One"}\nnull\n{"text": "Two"}\n', ["One", "Two"], 2),
        ("a.json", '[{"text": "One"},\n{"text": "Two"},\n{"te', ["One", "Two"], 3),
        ("a.json", '[{"text": "One"},\n 7,\n{"text": "Two"}]', ["One", "Two"], 2),
        ("a.json", '[{"text": "One"},\n{"text": "Two"}', ["One", "Two"], 2),
    ],
)
def test_what_is_being_written_is_named_and_the_rest_is_read(write, name, content, kept, bad):
    path = write(name, content)
    found, report = rows(path)
    assert [row["text"] for _, row in found] == kept
    assert report.examples == {"bad row": [f"{path}:{bad}"]}
    assert report.is_partial


def test_many_bad_rows_are_counted_and_the_first_named(write):
    path = write("a.jsonl", '{"text": "One two three."}\n' * 3 + "broken\n" * 40)
    report = CorpusReport()
    assert len(list(read_sentences(path, FIELD, report))) == 3
    assert report.dropped == {"bad row": 40}
    assert len(report.messages) == 6
    assert "35" in report.messages[-1]


def test_a_field_that_no_row_has_is_an_error_at_once(write, says):
    path = write("a.jsonl", '{"text": "One two three."}\n' * 5000)
    with says(CorpusError):
        list(read_sentences(path, CorpusOptions(field="body")))


def test_sheets_are_rows_if_a_field_is_named(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "text"], [1, "The pump leaks oil."], [None, None], [2, "The valve is shut."]):
        book.active.append(row)
    book.create_sheet("More").append(["text"])
    book["More"].append(["The fan is loud."])
    book.save(tmp_path / "a.xlsx")
    assert [(line, row["text"]) for line, row in rows(tmp_path / "a.xlsx")[0]] == [
        (2, "The pump leaks oil."),
        (4, "The valve is shut."),
        (2, "The fan is loud."),
    ]


@pytest.mark.parametrize(
    ("form", "shown"), [("0.0%", "47.5%"), ("0%;[Red]-0%", "47.5%"), ('0.0"%"', "0.475"), ("General", "0.475")]
)
def test_a_percentage_of_a_sheet_is_read_as_it_is_shown(tmp_path, form, shown):
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.append(["rate"])
    book.active.append([0.475])
    book.active["A2"].number_format = form
    book.save(tmp_path / "a.xlsx")
    *_, paragraph = read_paragraphs(open_source(tmp_path / "a.xlsx", CorpusOptions()), blocks=True)
    assert paragraph.sentences[-1][1] == f"| {shown} |"


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (501, "00000", "00501"),
        (123456789, "000-00-0000", "123-45-6789"),
        (1234567, "(000) 000-0000", "(000) 123-4567"),
        (42, '"INV-2024-"000', "INV-2024-042"),
        (12345, "000", "12345"),
        (7, "General", "7"),
        (7.5, "00.00", "7.5"),
        (0.30000000000000004, "General", "0.3"),
        (4.006381333931e12, "0", "4006381333931"),
        (datetime(2024, 3, 1), "yyyy-mm-dd", "2024-03-01"),
        (datetime(2024, 3, 1), "yyyy-mm-dd hh:mm", "2024-03-01 00:00:00"),
        (datetime(2024, 3, 1, 14, 30), "yyyy-mm-dd", "2024-03-01 14:30:00"),
    ],
)
def test_a_cell_of_a_sheet_has_the_digits_and_signs_that_are_shown(tmp_path, value, form, shown):
    book = pytest.importorskip("openpyxl").Workbook()
    for row in (["code", "text"], [value, "A pump."]):
        book.active.append(row)
    book.active["A2"].number_format = form
    book.save(tmp_path / "a.xlsx")
    *_, paragraph = read_paragraphs(open_source(tmp_path / "a.xlsx", CorpusOptions()), blocks=True)
    assert paragraph.sentences[-1][1] == f"| {shown} | A pump. |"
    ((_, row),) = rows(tmp_path / "a.xlsx")[0]
    assert row["code"] == shown


def test_names_of_fields_are_composed(write):
    decomposed = unicodedata.normalize("NFD", "größe")
    path = write("a.jsonl", json.dumps({decomposed: "One two three.", "text": "x"}) + "\n")
    for name in (decomposed, "größe"):
        assert list(read_sentences(path, CorpusOptions(field=name))) == ["One two three."]


@pytest.mark.parametrize(
    ("text", "decimal"),
    [
        ("id\tprice\na\t9.125\nb\t9.5\n", "."),
        ("id\tprice\na\t9,5\n", ","),
        ("id;price\na;9.5\n", "."),
        ("id;price\na;1.000\nb;3,5\n", ","),
        ("id;price\na;7\n", ","),
        ("id|price\na|9.125\n", "."),
        ("id,price\na,9.5\n", "."),
    ],
)
def test_the_decimal_sign_is_that_of_the_cells(tmp_path, text, decimal):
    (tmp_path / "a.csv").write_text(text)
    assert decimal_of(open_source(tmp_path / "a.csv", CorpusOptions(field="id"))) == decimal


def test_a_table_of_one_column_has_no_quotes_over_lines(tmp_path):
    (tmp_path / "a.tsv").write_text('text\n"Stop\nnow\ngo"\n')
    source = open_source(tmp_path / "a.tsv", CorpusOptions(field="text"))
    assert [text for _, _, text in texts_of_rows(source)] == ['"Stop', "now", 'go"']


def test_a_cell_too_many_makes_the_reading_partial(tmp_path):
    (tmp_path / "a.csv").write_text("id,text\n1,The pump, it leaks\n2,b\n3,c\n")
    report = CorpusReport()
    list(texts_of_rows(open_source(tmp_path / "a.csv", CorpusOptions(field="text"), report=report)))
    assert report.is_partial
    assert "' it leaks' is dropped" in report.messages[0]


def test_a_soft_hyphen_at_the_end_of_a_line_joins_the_word(tmp_path):
    (tmp_path / "a.txt").write_text("The turbo\u00ad\ncharger is loud.\nsoft\u00ad\nware\n")
    assert [text.strip() for _, text in text_lines(open_source(tmp_path / "a.txt", CorpusOptions()))] == [
        "The",
        "turbocharger is loud.",
        "software",
    ]


def test_a_soft_hyphen_at_the_end_of_a_row_joins_no_rows(tmp_path):
    (tmp_path / "a.csv").write_text('id,text\n1,turbo\u00ad\n2,"The turbo\u00ad\ncharger"\n3,fan\n')
    source = open_source(tmp_path / "a.csv", CorpusOptions(field="text"))
    assert [text for _, _, text in texts_of_rows(source)] == ["turbo", "The turbocharger", "fan"]


@pytest.mark.parametrize(("first", "second"), [("48.137;-0.118", "52.520;0.125"), ("0.125;1.250", "2.500;3.125")])
def test_three_decimals_behind_a_zero_show_their_sign(tmp_path, first, second):
    (tmp_path / "a.csv").write_text(f"lat;lon;text\n{first};one\n{second};two\n")
    assert decimal_of(open_source(tmp_path / "a.csv", CorpusOptions())) == "."


@pytest.mark.parametrize(
    ("value", "kind"), [(-62135596800000000, ("us", "America/New_York")), (316516896000000000, ("us",))]
)
def test_times_that_python_has_none_for_are_texts(tmp_path, value, kind):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"text": ["one", "two"], "at": pa.array([value, 0], pa.timestamp(*kind))})
    parquet.write_table(table, tmp_path / "a.parquet")
    rows = [row for _, row in read_rows(open_source(tmp_path / "a.parquet", CorpusOptions()))]
    assert [row["text"] for row in rows] == ["one", "two"]
    assert all(isinstance(row["at"], str) for row in rows)


def test_columns_of_one_name_are_all_kept(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table([["One"], ["x"], ["y"]], names=["text", "a", "a"]), tmp_path / "a.parquet")
    assert rows(tmp_path / "a.parquet")[0] == [(1, {"text": "One", "a": "x", "a 3": "y"})]


def test_a_byte_order_mark_between_files_that_were_joined_is_no_text(write):
    assert texts(write("a.jsonl", '{"text": "One"}\n\ufeff{"text": "Two"}\n')) == ["One", "Two"]


def test_lines_left_out_are_told_with_a_cure(write):
    path = write(
        "a.txt", "Die Größe der Brücke übertrifft alles.\nDie Straße ist neu.\nEin Satz ohne Umlaut.\n".encode("cp437")
    )
    report = CorpusReport()
    list(read_sentences(path, CorpusOptions(split="line"), report))
    assert "1 of its lines are skipped" in report.notes[-1]
    assert report.notes[-1].endswith("give --encoding")


def test_an_encoding_that_is_not_known_by_its_bytes_is_asked_for(tmp_path, says):
    (tmp_path / "a.txt").write_bytes("Die Größe der Tür, über 5 °C.\n".encode("cp850"))
    with says(CorpusError):
        list(read_sentences(tmp_path / "a.txt"))


def test_a_name_that_is_not_utf8_is_refused(tmp_path, says):
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_text("The pump leaks at the seal.\n")
    with says(CorpusError):
        list(read_sentences(path))
