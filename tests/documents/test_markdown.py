"""Markdown as blocks: fences, tables, lists and headings, and what only looks like them."""

import time

import pytest

from likewise.corpus.sentence_splitter import PARAGRAPH_LIMIT
from likewise.documents.front_matter import front_matter
from likewise.documents.inline_markdown import plain, without_links
from likewise.documents.markdown import markdown_blocks


def blocks(text):
    return [
        (one.kind, one.lines[0][0], "\n".join(line for _, line in one.lines), " > ".join(one.headings))
        for one in markdown_blocks(enumerate(text.split("\n"), 1))
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "# A\n\ntext\n## B ##\nmore\n# C\nend",
            [("prose", 3, "text", "A"), ("prose", 5, "more", "A > B"), ("prose", 7, "end", "C")],
        ),
        ("A\n===\ntext\n\nB\n---\nmore", [("prose", 3, "text", "A"), ("prose", 7, "more", "A > B")]),
        (
            "```sh\n# no heading\n\nmake\n```\ntext",
            [("code", 1, "```sh\n# no heading\n\nmake\n```", ""), ("prose", 6, "text", "")],
        ),
        ("~~~~\n```\n~~~\n~~~~\ntext", [("code", 1, "~~~~\n```\n~~~\n~~~~", ""), ("prose", 5, "text", "")]),
        (
            "- one\n  ```\n  x\n  ```\n- two",
            [("prose", 1, "- one", ""), ("code", 2, "  ```\n  x\n  ```", ""), ("prose", 5, "- two", "")],
        ),
        ("```\nnever closed", [("code", 1, "```\nnever closed", "")]),
        (
            "text\n\n    make\n\n    make test\nmore",
            [("prose", 1, "text", ""), ("code", 3, "    make\n\n    make test", ""), ("prose", 6, "more", "")],
        ),
        ("- one\n\n    of its text", [("prose", 1, "- one", ""), ("prose", 3, "of its text", "")]),
        (
            "text\n| a | b |\n| - | -: |\n| 1 | 2 |\n\nmore",
            [("prose", 1, "text", ""), ("table", 2, "| a | b |\n| - | -: |\n| 1 | 2 |", ""), ("prose", 6, "more", "")],
        ),
        ("a | b\nno | table", [("prose", 1, "a | b\nno | table", "")]),
        ("---\n\ntext", [("prose", 1, "---", ""), ("prose", 3, "text", "")]),
        ("#hashtag and `code`\n####### seven", [("prose", 1, "#hashtag and `code`\n####### seven", "")]),
        ("<!-- left out -->\n# C# {#c-sharp}\n[*a*](b)", [("prose", 3, "[*a*](b)", "C#")]),
        ("# [A *b*](x) `c`\ntext", [("prose", 2, "text", "A b c")]),
    ],
)
def test_blocks(text, wanted):
    assert blocks(text) == wanted


def test_nothing_is_held_without_limit():
    for text in ("```\n" + "x = 1\n" * 40_000, "word\n" * 40_000, "a | b\n--- | ---\n" + "1 | 2\n" * 40_000):
        found = list(markdown_blocks(enumerate(text.split("\n"), 1)))
        assert len({one.kind for one in found}) == 1
        assert sum(len(one.lines) for one in found) == text.count("\n")
        assert max(sum(len(line) + 1 for _, line in one.lines) for one in found) <= PARAGRAPH_LIMIT + 10


@pytest.mark.parametrize("sign", ["[", "#", "`", "|", "*", "- ", "> ", " ", "![", "[](", "<!--", "|-"])
def test_a_long_line_of_signs_takes_no_time(sign):
    line = sign * (200_000 // len(sign))
    begun = time.process_time()
    list(markdown_blocks([(1, "a | b"), (2, line), (3, f"# {line}"), (4, f"{line} x")]))
    plain(line[:300])
    without_links(line)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "picture",
    [
        "![Image](data:image/png;base64,{})",
        "[image1]: <data:image/png;base64,{}>",
        '<img src="data:image/png;base64,{}">',
    ],
)
def test_pictures_within_the_text_are_left_out(picture):
    text = ["Before.", "", picture.format("iVBORw0KGgo" * 2000), "", "Behind."]
    said = " ".join(line for block in markdown_blocks(enumerate(text, 1)) for _, line in block.lines)
    assert "Before." in said
    assert "Behind." in said
    assert "KGgo" not in said


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("`grid[x][y]` and `run[it](now)`", "`grid[x][y]` and `run[it](now)`"),
        ("m[i][j] is f[x](y)", "m[i][j] is f[x](y)"),
        ("See [the page](a.md), re[view](b.md), [more][1] and ![](c.png).", "See the page, review, more and ."),
        ("请参阅[文档](https://a.org/b)。", "请参阅文档。"),
        ("See [the\nlist](a.md) or [a file](<file:///b c.md>).", "See the\nlist or a file."),
        ("[x][a](b.md) and [][i`x[y](z)` stay", "[x]a and [][i`x[y](z)` stay"),
    ],
)
def test_links_are_their_words_and_brackets_of_code_stay(text, wanted):
    assert without_links(text) == wanted


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("Area = 2 * r * pi", "Area = 2 * r * pi"),
        ("char **copy(const char *s)", "char **copy(const char *s)"),
        ("**Bold** and *thin*", "Bold and thin"),
        ("a[i][j]", "a[i][j]"),
    ],
)
def test_stars_of_a_heading_that_are_no_marks_stay(heading, title):
    assert plain(heading) == title


def test_values_of_front_matter_are_what_stands_there():
    lines = "---\nzip: 01234\nstart: 10:30\nlang: no\non: air\nopen: true\nyear: 2020\nrate: 1.5\nmany:\n"
    lines += "".join(f"- {n}\n" for n in range(300)) + "---\ntext"
    values, rest = front_matter(enumerate(lines.split("\n"), 1))
    assert values.pop("many")[-1] == 299
    wanted = {"zip": "01234", "start": "10:30", "lang": "no", "on": "air", "open": True, "year": 2020, "rate": 1.5}
    assert values == wanted
    assert rest == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a <!-- secret --> b", "a  b"),
        ("a <!-- one\ntwo --> b", "a \n b"),
        ("say `<!-- this -->` here", "say `<!-- this -->` here"),
        ("it never ends: <!-- but is text", "it never ends: <!-- but is text"),
    ],
)
def test_a_comment_within_a_paragraph_is_left_out(text, wanted):
    assert [block[2] for block in blocks(text)] == [wanted]
