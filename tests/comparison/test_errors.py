import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from likewise.comparison.analyses import errors_table, write_errors
from likewise.comparison.comparison_page import differences
from likewise.evaluation.pairs import RatedPairs
from likewise.evaluation.rank_errors import ranked
from likewise.evaluation.registry import rated_task

FIRST = ["I oppose it.", "<b>tags</b> & a | bar", "It rains.", "A man sings."]
SECOND = ["I support it.", "tags", "It pours.", "A man is singing."]


@pytest.fixture
def analysis():
    pairs = RatedPairs(FIRST, SECOND, np.array([0.0, 5.0, 4.0, 4.0]), (("forum", slice(0, 4)),))
    found = ranked(np.array([0.9, 0.1, 0.2, 0.3]), pairs, rated_task("sts14"), 3, "runs/a")
    return replace(found, spearman=-60.0, spearman_equation_10=-65.0)


class Page(HTMLParser):
    """The text of the table's cells, the tags, and whatever would be fetched."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.fetched, self.cells = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.fetched += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        if tag in self.open:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open:
            self.cells[-1] += data


def test_the_page_is_whole_safe_and_needs_no_other_file(analysis, tmp_path):
    pytest.importorskip("jinja2")
    written = write_errors(analysis, tmp_path)
    assert [path.name for path in written] == [f"errors.{kind}" for kind in ("json", "md", "png", "html")]
    text = written[3].read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert all(value.startswith("data:image/png;base64,") for value in page.fetched)
    assert not {"script", "link", "b"} & set(page.tags)
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text
    assert page.tags.count("tr") == 4
    cells = [" ".join(cell.split()) for cell in page.cells]
    assert cells[:3] == ["1", "I oppose it. I support it. forum", "▲ overestimated"]
    assert cells[3:8] == ["0", "0.900", "1", "4", "9"]
    assert cells[9:16] == ["<b>tags</b> & a | bar tags forum", "▼ underestimated", "5", "0.100", "4", "1", "9"]
    assert cells[21] == "2.5"  # a gold rank that two pairs share
    assert "I <mark>oppose</mark> it." in text


def test_json_and_table(analysis):
    content = json.loads(json.dumps(analysis.to_dict()))
    assert content["worst"][0]["direction"] == "overestimated"
    assert (content["worst"][0]["gold_rank"], content["worst"][0]["estimated_rank"]) == (1, 4)
    assert content["pairs"] == 4
    lines = errors_table(analysis).splitlines()
    row = next(i for i, line in enumerate(lines) if "I oppose it." in line)
    assert [cell.strip() for cell in lines[row].split(" | ")][2:] == ["overestimated", "0", "0.900", "1", "4", "9 |"]
    assert "I support it." in lines[row + 1]
    assert "a \\| bar" in "\n".join(lines)


@pytest.mark.parametrize(("first", "second"), [*zip(FIRST, SECOND, strict=True), ("", "a"), ("a  b", "A B")])
def test_differences_give_the_sentences_back(first, second):
    left, right = differences(first, second)
    assert "".join(text for text, _ in left) == first
    assert "".join(text for text, _ in right) == second
    # What is in both is the same on both sides, whatever the case and the blanks.
    shared = ["".join("".join(text for text, both in parts if both).split()).lower() for parts in (left, right)]
    assert shared[0] == shared[1]
