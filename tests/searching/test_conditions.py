import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.searching import Index, SearchError
from likewise.searching.conditions import ConditionError, condition_of

FIELDS = ["file", "line", "year"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("line=3", "`line` = 3"),
        ("3 < line", "3 < `line`"),
        ("line = 1 OR line = 2 AND year <> 'a'", "(`line` = 1 OR (`line` = 2 AND `year` <> 'a'))"),
        ("(line = 1 or line = 2) and year = 'it''s'", "(((`line` = 1 OR `line` = 2)) AND `year` = 'it''s')"),
        ("not year is null", "NOT `year` IS NULL"),
        ("year is not null", "`year` IS NOT NULL"),
        ("year not in ('a', 'b;c')", "`year` NOT IN ('a', 'b;c')"),
        ("line between -1 and 2.5", "`line` BETWEEN -1 AND 2.5"),
        ("\"file\" not like '%(%'", "`file` NOT LIKE '%(%'"),
        ("`year` = file", "`year` = `file`"),
    ],
)
def test_what_is_part_of_the_grammar_is_written_anew(given, wanted):
    assert condition_of(given, FIELDS) == wanted


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("length(repeat(repeat(text, 1000), 1000)) > 0", "'length' is a function"),
        ("line = abs(3)", "'abs' is a function"),
        ("1=1; DROP TABLE x", r"'; DROP TABLE x' is not understood"),
        ("line = 1 -- more", "'-- more' is not understood"),
        ("line = 1 /* a */", "is not understood"),
        ("line + 1 = 2", r"'\+ 1 = 2' is not understood"),
        ("line = (SELECT 1)", r"'\(' stands in the place of a field"),
        ("line::text = '1'", "is not understood"),
        ("year ~ 'a'", "is not understood"),
        ("year = 'a", "a text has no end"),
        ("yeer = 1", "there is no field 'yeer'"),
        ("line = = 1", "'=' stands in the place of a field"),
        ("line", "the end stands in the place of a comparison"),
        ("line = 1 line = 2", "'line' stands in the place of AND"),
        ("line = 0x10", "is not understood"),
        ("line = 1e400", "is not understood"),
        ("true", "the end stands in the place of a comparison"),
        ("year LIKE 3", "'3' stands in the place of a text"),
        ("year LIKE file", "'file' stands in the place of a text"),
        ("line IN ()", r"'\)' stands in the place of a field, text or number"),
        ("CASE WHEN line = 1 THEN 1 END", "there is no field 'CASE'"),
        ("(" * 40 + "line = 1" + ")" * 40, "more than 30 brackets"),
        ("NOT " * 40 + "line = 1", "more than 30 brackets"),
        (" OR ".join(["line=1"] * 900) + f" OR line IN ({','.join('1' * 200)})", "more than 1,000 comparisons"),
        ("line = 1 OR " * 1000, "12,000 characters"),
        ("   ", "the end stands in the place"),
    ],
)
def test_everything_else_is_an_error_that_names_it(given, named):
    with pytest.raises(ConditionError, match=named) as error:
        condition_of(given, FIELDS)
    assert "the fields are file, line, year" in str(error.value)


@given(st.text(st.sampled_from("line year'`\"()<>=!,;-+*/\\%_.0123456789ANDORTIK\n\0é"), max_size=60))
def test_no_condition_is_a_fault_and_what_passes_holds_nothing_but_the_grammar(condition):
    try:
        found = condition_of(condition, FIELDS)
    except ConditionError:
        return
    bare = re.sub(r"'(?:[^']|'')*'|`[a-z]+`|[+-]?\d[\d.]*|[+-]?\.\d+", "", found)
    words = "AND|OR|NOT|IN|LIKE|BETWEEN|IS|NULL|TRUE|FALSE"
    assert re.fullmatch(rf"(?:\s|{words}|<>|!=|<=|>=|[=<>(),])*", bare)


def test_the_index_answers_what_it_was_asked_and_nothing_more(indexed):
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
        with pytest.raises(SearchError, match=r"is not valid .*the fields are id, file, line, title, text"):
            reader.search("the cat", mode="words", where=condition)
    assert len(reader.search("the cat", where=" OR ".join(["line=3"] * 900))) == 2
