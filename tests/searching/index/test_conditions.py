import datetime
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import index
from likewise.corpus import CorpusOptions
from likewise.searching import Index, SearchError
from likewise.searching.index.conditions import condition_of
from likewise.searching.index.fields import FieldColumn

FIELDS = {
    "file": FieldColumn("file", "text"),
    "line": FieldColumn("line", "int"),
    "year": FieldColumn("text_year", "text", "year"),
}
OTHERS = {
    "id": FieldColumn("id", "text", exact=True),
    "count": FieldColumn("int_count", "int", "count"),
    "price": FieldColumn("float_price", "float", "price"),
    "new": FieldColumn("bool_new", "bool", "new"),
    "Created At": FieldColumn("date_Created$20At", "date", "Created At"),
    "tags": FieldColumn("list_tags", "list", "tags"),
}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("line=3", "`line` = 3"),
        ("3 < line", "`line` > 3"),
        ("line = 1 OR line = 2 AND year <> 'A'", "(`line` = 1 OR (`line` = 2 AND lower(`text_year`) <> 'a'))"),
        ("(line = 1 or line = 2)", "((`line` = 1 OR `line` = 2))"),
        ("not year is null", "NOT `text_year` IS NULL"),
        ("year not in ('a', 'b;c')", "NOT (lower(`text_year`) = 'a' OR lower(`text_year`) = 'b;c')"),
        ("year = 2004", "lower(`text_year`) = '2004'"),
        ("line between -1 and 2.5", "(`line` >= -1 AND CAST(`line` AS DOUBLE) <= 2.5)"),
        ("\"file\" not like '%(%'", "NOT lower(`file`) LIKE '%(%'"),
        ("`year` = file", "lower(`text_year`) = lower(`file`)"),
        ("file = 'A.txt'", "(lower(`file`) = 'a.txt' OR ends_with(lower(`file`), '/a.txt'))"),
        ("file <> 'a'", "NOT (lower(`file`) = 'a' OR ends_with(lower(`file`), '/a'))"),
    ],
)
def test_what_is_part_of_the_grammar_is_written_anew(given, wanted):
    assert condition_of(given, FIELDS) == wanted


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("id = 'A7'", "`id` = 'A7'"),
        ("count > 4.5", "CAST(`int_count` AS DOUBLE) > 4.5"),
        ("count = 1e2", "CAST(`int_count` AS DOUBLE) = 100.0"),
        ("price < '1e-05'", "`float_price` < 1e-05"),
        ("price > count", "CAST(`float_price` AS DOUBLE) > CAST(`int_count` AS DOUBLE)"),
        ("new != 'false'", "`bool_new` != FALSE"),
        ("tags = 'O''Neill'", "coalesce(strpos(lower(`list_tags`), '\x1fo''neill\x1f') > 0, FALSE)"),
        ('"created at" IS NULL', "`date_Created$20At` IS NULL"),
    ],
)
def test_a_literal_is_read_as_its_field_is(given, wanted):
    assert condition_of(given, OTHERS) == wanted


@pytest.mark.parametrize(
    "given",
    [
        "count = 'soon'",
        "count LIKE '2%'",
        "new = 3",
        "`Created At` > 'soon'",
        "tags < 'a'",
        "tags > 3",
        "id > 10",
        "count = id",
        "count = 1e999",
    ],
)
def test_what_cannot_be_compared_is_said(given, says):
    with says(SearchError):
        condition_of(given, OTHERS)


@pytest.fixture(scope="module")
def shop(saved_model, tmp_path_factory):
    """Rows whose fields have values of every kind, and missing ones."""
    zone = datetime.timezone(datetime.timedelta(hours=2))
    days = ["2024-05-01T01:00:00+02:00", "2024-05-01", "2024-05-31", "2023-12-31T23:59:59Z", None]
    rows = [
        {"id": f"r{i}", "text": f"the cat {i}", "price": price, "Created At": day, "tags": tags, "maker": maker}
        for i, (price, day, tags, maker) in enumerate(
            zip(
                [Decimal("9.50"), 100, "N/A", 1e-05, "\\N"],
                days,
                [["Pump", "oil"], [], ["pump house"], ["oil"], None],
                ["Ada", "ADA", "Bo", None, "ada l."],
                strict=True,
            )
        )
    ]
    rows[1]["seen"] = datetime.datetime(2024, 5, 1, 1, tzinfo=zone)
    return index(rows, model=saved_model, out=tmp_path_factory.mktemp("shop") / "shop.index", quiet=True)


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("price > 10", {1}),
        ("price < 0.001", {3}),
        ("price IS NULL", {2, 4}),
        ("price BETWEEN 9 AND '9.5'", {0}),
        ("\"Created At\" = '2024-05-01'", {1}),
        ("\"Created At\" < '2024-05-01'", {0, 3}),
        ("\"Created At\" <= '2024-05'", {0, 1, 2, 3}),
        ("\"created at\" > '2024-05-01T00:00:00+02:00' AND tags = 'pump'", {0}),
        ("\"Created At\" IN ('2023', '2024-05-31')", {2, 3}),
        ("tags = 'oil'", {0, 3}),
        ("tags LIKE 'pump%'", {0, 2}),
        ("tags IN ('PUMP', 'pump house')", {0, 2}),
        ("tags IS NULL", {1, 4}),
        ("maker = 'ada'", {0, 1}),
        ("maker LIKE 'ADA%'", {0, 1, 4}),
        ("NOT maker IS NULL", {0, 1, 2, 4}),
        ("seen = '2024-04-30'", {1}),
    ],
)
def test_conditions_know_numbers_dates_with_a_zone_lists_and_what_is_missing(shop, where, wanted):
    for mode in ("hybrid", "vectors", "words"):
        assert {hit.id for hit in shop.search("the cat", 9, mode=mode, where=where)} == {f"r{i}" for i in wanted}


def test_the_kinds_of_fields_are_told_and_a_list_is_one_again(shop):
    assert shop.fields["price"] == "numbers"
    assert (shop.fields["Created At"], shop.fields["tags"]) == ("dates", "lists of strings")
    (hit,) = shop.search("the cat", where="id = 'r0'")
    assert hit.metadata["tags"] == ["Pump", "oil"]
    assert hit.metadata["Created At"] == "2024-05-01T01:00:00+02:00"


def test_numbers_of_a_table_are_numbers_as_people_write_them(saved_model, tmp_path, says):
    rows = ["text,id,plain,comma,small,mixed, year", 'the cat one,a,5,"1,200",1e-05,7,2020']
    (tmp_path / "a.csv").write_text("\n".join([*rows, "the cat two,b,,950,0.5,soon,2021"]) + "\n")
    options = CorpusOptions(field="text")
    found = index(tmp_path / "a.csv", model=saved_model, out=tmp_path / "i", corpus_options=options, quiet=True)
    for where, wanted in (("comma > 1000", "a"), ("small < 0.1", "a"), ("plain IS NULL", "b"), ("year > 2020", "b")):
        assert [hit.id for hit in found.search("the cat", where=where)] == [wanted]
    with says(SearchError):
        found.search("the cat", where="mixed > 5")


@pytest.mark.parametrize(
    "given",
    [
        "length(repeat(repeat(text, 1000), 1000)) > 0",
        "line = abs(3)",
        "1=1; DROP TABLE x",
        "line = 1 -- more",
        "line = 1 /* a */",
        "line + 1 = 2",
        "line = (SELECT 1)",
        "line::text = '1'",
        "year ~ 'a'",
        "year = 'a",
        "yeer = 1",
        "line = = 1",
        "line",
        "line = 1 line = 2",
        "line = 0x10",
        "line = 1e400",
        "1 = 1",
        "true",
        "year LIKE 3",
        "year LIKE file",
        "line IN ()",
        "CASE WHEN line = 1 THEN 1 END",
        "(" * 40 + "line = 1" + ")" * 40,
        "NOT " * 40 + "line = 1",
        " OR ".join(["line=1"] * 900) + f" OR line IN ({','.join('1' * 200)})",
        "line = 1 OR " * 1000,
        "   ",
    ],
)
def test_everything_else_is_an_error_that_names_it(given, says):
    with says(SearchError) as error:
        condition_of(given, FIELDS)
    assert "the fields are file, line, year" in str(error.value)


@given(st.text(st.sampled_from("line year'`\"()<>=!,;-+*/\\%_.0123456789ANDORTIK\n\0é"), max_size=60))
def test_no_condition_is_a_fault_and_what_passes_holds_nothing_but_the_grammar(condition):
    try:
        found = condition_of(condition, FIELDS)
    except SearchError:
        return
    bare = re.sub(r"'(?:[^']|'')*'|lower\(`\w+`\)|CAST\(`\w+` AS DOUBLE\)|`\w+`|[+-]?\d[\d.e+-]*", "", found)
    assert re.fullmatch(r"(?:\s|AND|OR|NOT|LIKE|IS|NULL|<>|!=|<=|>=|[=<>()])*", bare)


def test_the_index_answers_what_it_was_asked_and_nothing_more(indexed, says):
    reader = Index(indexed)
    for condition in (
        "line BETWEEN 2 AND 4",
        "line IN (2, 3, 4)",
        "NOT (line < 2 OR line > 4)",
        "`line`>=2 AND 4>=line",
    ):
        found = reader.search("the cat", 50, mode="vectors", where=condition)
        assert {hit.line for hit in found} == {2, 3, 4}
    assert reader.search("the cat", where="title IS NULL") == []
    assert reader.search("the cat", where="text LIKE '\\'") == []
    for condition in ("length(repeat(repeat(text, 1000), 1000)) > 0", "1=1; DROP TABLE x", "(SELECT 1) = 1"):
        with says(SearchError):
            reader.search("the cat", mode="words", where=condition)
    assert len(reader.search("the cat", where=" OR ".join(["line=3"] * 900))) == 2


def test_whole_numbers_are_compared_to_their_last_digit(saved_model, tmp_path):
    rows = [{"id": name, "text": f"pump {name}", "n": 2**60 + i, "m": 2**60} for i, name in enumerate("ab")]
    made = index(rows, model=saved_model, out=tmp_path / "ix", quiet=True)
    for where, wanted in ((f"n = {2**60 + 1}", "b"), (f"n <= {2**60}", "a"), (f"n IN ({2**60})", "a"), ("n > m", "b")):
        assert [hit.id for hit in made.search("pump", where=where)] == [wanted], where


def test_dates_to_the_minute_and_what_is_no_date(word_model, tmp_path, says):
    rows = [{"text": f"pump {day}", "seen": day} for day in ("2023-12-31", "2024-05-01", "2024-05-31 23:10")]
    index(rows, model=word_model, out=tmp_path / "a.index", quiet=True)
    opened = Index(tmp_path / "a.index")
    assert opened.fields["seen"] == "dates"
    for where, wanted in (("seen = '2024-05'", [1, 2]), ("seen <= '2024-05'", [0, 1, 2]), ("seen > '2024-05-31'", [])):
        assert sorted(hit.id for hit in opened.search("pump", where=where)) == wanted
    index([*rows, {"text": "pump", "seen": "tbd"}], model=word_model, out=tmp_path / "b.index", quiet=True)
    with says(SearchError):
        Index(tmp_path / "b.index").search("pump", where="seen <= '2024-05'")


def test_like_reads_the_signs_of_a_pattern_alike_in_texts_and_lists(tmp_path, saved_model):
    values = ["50% off", "50 off", "a_b", "axb", "a\\b"]
    for column in (values, [[value] for value in values]):
        rows = [{"id": str(n), "text": f"The pump {n}", "t": value} for n, value in enumerate(column)]
        made = index(rows, model=saved_model, out=tmp_path / "a.index", overwrite=True, quiet=True)
        for pattern, wanted in (("50\\%%", "0"), ("a\\_b", "2"), ("a\\b", "4")):
            assert [hit.id for hit in made.search("pump", where=f"t LIKE '{pattern}'")] == [wanted]


def test_long_whole_numbers_keep_their_digits(tmp_path, saved_model):
    (tmp_path / "a.csv").write_text(
        "id,post,card,text\na,1234567890123456789,89490200001234567890,pump one\n"
        "b,1234567890123456788,89490200001234567891,pump two\n"
    )
    made = index(tmp_path / "a.csv", model=saved_model, out=tmp_path / "a.index", quiet=True)
    for condition in ("post = 1234567890123456789", "card = '89490200001234567890'"):
        (hit,) = made.search("pump", where=condition)
        assert (hit.id, hit.metadata["post"], hit.metadata["card"]) == (
            "a",
            1234567890123456789,
            "89490200001234567890",
        )


def test_ids_that_are_numbers_are_compared_as_such(tmp_path, saved_model, says):
    rows = [{"id": n, "text": f"text number {n}"} for n in (1, 2, 9, 10, 100)]
    made = index(rows, model=saved_model, out=tmp_path / "a.index", quiet=True)
    assert sorted(hit.id for hit in made.search("text", where="id > 5")) == [9, 10, 100]
    for wrong in (None, 3.5):
        with says(SearchError):
            made.delete(wrong)
