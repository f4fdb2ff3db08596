"""Markdown as blocks: fences, tables, lists and headings, and what only looks like them."""

import time

import pytest

from likewise.corpus.markdown import markdown_blocks
from likewise.corpus.sentence_splitter import PARAGRAPH_LIMIT


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
    from likewise.corpus.markdown import plain

    line = sign * (200_000 // len(sign))
    begun = time.process_time()
    list(markdown_blocks([(1, "a | b"), (2, line), (3, f"# {line}"), (4, f"{line} x")]))
    plain(line[:300])
    from likewise.corpus.markdown import without_links

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
