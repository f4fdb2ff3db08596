"""No text of a user, however it was made to, is looked at in more than linear time."""

import ast
import importlib
import re
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]

import pytest

import likewise

SOURCE = Path(likewise.__file__).parent
KINDS = [
    *" \t\n\u00a0\u3000,;:.!?'\"“(){}[]<>|/\\#*_-=+~`^&@0aAéЖ日ا\u0301\u200b",
    "not ", "n't ", "don't ", "A ", "Ab ", "a.", "a. ", "1.", "1,", ", ", "\n ", "\n\n", "a-\n", "[[", "{{", "a'",
    "- ", "# ", "> ", "| a ", "|-", "[a](", "**a", "avoiding ", "without ", "title: ", "-a", '"a', "=a", "<a", "<!--",
]  # fmt: skip
ENDS = ("", "\0")


def parts(given: object) -> Iterator[parser.SubPattern]:
    """Yield the patterns directly in a part of a pattern."""
    if isinstance(given, parser.SubPattern):
        yield given
    elif isinstance(given, tuple | list):
        for one in given:
            yield from parts(one)


def repeats(code: object, given: object) -> bool:
    return code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and given[1] == codes.MAXREPEAT  # type: ignore[index]


def is_nested(tree: parser.SubPattern) -> bool:
    """Return whether a part that repeats without end is all that another such part repeats, as in (a+)*."""

    def only_repeats(body: parser.SubPattern) -> bool:
        found = [item for code, given in body for item in [(code, given)] if code is not codes.AT]
        inner = [any(map(only_repeats, parts(given))) if code is codes.SUBPATTERN else repeats(code, given)
                 for code, given in found]  # fmt: skip
        return bool(inner) and all(inner)

    return any(
        (repeats(code, given) and any(map(only_repeats, parts(given)))) or any(map(is_nested, parts(given)))
        for code, given in tree
    )


def signs_of(tree: parser.SubPattern) -> Iterator[str]:
    """Yield the signs that a pattern itself names."""
    for code, given in tree:
        if code is codes.LITERAL:
            yield chr(given)
        elif code is codes.IN:
            yield from (chr(value) for kind, value in given if kind is codes.LITERAL)
        for part in parts(given):
            yield from signs_of(part)


def inside(value: object, depth: int = 0) -> Iterator[re.Pattern]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list | dict) and depth < 3 and len(value) < 1000:
        for one in value.values() if isinstance(value, dict) else value:
            yield from inside(one, depth + 1)


def in_calls(text: str) -> Iterator[tuple[re.Pattern, str]]:
    """Yield the patterns in calls of `re`, and the functions; in the gaps of one that is put together is a word."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args:
            pieces = node.args[0].values if isinstance(node.args[0], ast.JoinedStr) else node.args[:1]
            texts = [piece.value if isinstance(piece, ast.Constant) else "word" for piece in pieces]
            if any(isinstance(piece, ast.Constant) for piece in pieces):
                pattern = re.compile(texts[0] if isinstance(texts[0], bytes) else "".join(map(str, texts)))
                yield pattern, ast.unparse(node.func).removeprefix("re.")


@pytest.fixture(scope="module")
def patterns() -> dict[re.Pattern, tuple[str, set[str]]]:
    """The regular expressions of the source: where they are, and by which methods they are used."""
    found: dict[re.Pattern, tuple[str, set[str]]] = {}
    sources = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    whole = "\n".join(sources.values())
    for path, text in sources.items():
        place = path.relative_to(SOURCE.parent).with_suffix("")
        if "re.compile(" in text:
            try:
                values = vars(importlib.import_module(".".join(place.parts)))
            except ImportError:  # an extra that is not installed here
                values = {}
            for name, value in values.items():
                if not any(inside(value)):
                    continue
                used_in = text if name.startswith("_") else whole
                methods = set(re.findall(rf"\b{name}\.(\w+)\(", used_in)) or {"finditer"}
                found.update(dict.fromkeys(inside(value), (f"{place}: {name}", methods)))
        for pattern, method in in_calls(text):
            if method != "compile":  # seen above
                found.setdefault(pattern, (str(place), {method}))
    assert len(found) > 60
    return found


def test_no_expression_repeats_a_repetition(patterns):
    assert is_nested(parser.parse("x(?:a+|b)*(?:(\\s*)+)y"))
    assert not is_nested(parser.parse(r"\w+(?:[.,]\d+)*"))
    assert not [
        place for pattern, (place, _) in patterns.items() if is_nested(parser.parse(pattern.pattern, pattern.flags))
    ]


def seconds_of(pattern: re.Pattern, methods: set[str], text: str) -> float:
    """Return the time of the processor that an expression takes on a text."""
    given = text.encode() if isinstance(pattern.pattern, bytes) else text
    begun = time.thread_time()
    pattern.match(given)
    pattern.fullmatch(given)
    if methods - {"match", "fullmatch"}:
        deque(pattern.finditer(given), 0)
    return time.thread_time() - begun


def slow(pattern: re.Pattern, methods: set[str], length: int = 8000, seconds: float = 0.1) -> str:
    """Return a text on which an expression takes more of the processor than fifty times what a scan does, or "".

    What is slow there takes a 64th of the time or more on an eighth of the text, which is tried first.
    """
    for kind in dict.fromkeys([*KINDS, *signs_of(parser.parse(pattern.pattern, pattern.flags))]):
        for end in ENDS:
            short, whole = (kind * (size // len(kind)) + end for size in (length // 8, length))
            if seconds_of(pattern, methods, short) < seconds / 200:
                continue
            if seconds_of(pattern, methods, whole) > seconds:
                return f"{kind!r}, {end!r}"
    return ""


@pytest.mark.parametrize("known", [r"\s+([.?!])", r"(\w+)-\n", "x*=+y"])
def test_the_check_finds_what_is_slow(known):
    assert slow(re.compile(known), {"sub"})


def test_every_expression_is_linear(patterns):
    found = {place: text for pattern, (place, methods) in patterns.items() if (text := slow(pattern, methods))}
    assert found == {}


def numbered(text: str) -> list[tuple[int, str]]:
    return list(enumerate(text.split("\n"), 1))


def looks() -> dict[str, object]:
    """Return functions that look at a user's text, by name."""
    from likewise.augment.negation.antonyms import may_have_opposites, opposites
    from likewise.corpus.articles import clean_markup, heading_in, is_sentence_like
    from likewise.corpus.clean_text import without_invisible
    from likewise.corpus.inputs import _are_files
    from likewise.corpus.sentence_splitter import is_prose, is_wrapped, paragraphs_of, sentence_spans
    from likewise.corpus.words import with_blanks, word_count
    from likewise.documents.front_matter import front_matter
    from likewise.documents.inline_markdown import plain, without_links
    from likewise.documents.markdown import markdown_blocks
    from likewise.documents.other_markup import adoc_lines, org_lines, rst_lines
    from likewise.errors import printable
    from likewise.evaluation.bm25 import analyzer, folded
    from likewise.searching.choose.query_prompts import answered, quoted
    from likewise.searching.duplicates.word_differences import difference, shared, wording
    from likewise.searching.duplicates.word_differences import sentences_of as compared_sentences
    from likewise.searching.index.fields import is_date
    from likewise.searching.index.passages import _is_delimiter
    from likewise.searching.query.exclusion import divided
    from likewise.searching.query.typed_query import TypedQuery, searched_words

    def typed(text: str) -> object:
        with suppress(likewise.LikewiseError):  # too many phrases
            return TypedQuery.of(text)
        return None

    def compared(first: object, second: object) -> object:
        return shared(first, second), difference(first, second)  # type: ignore[arg-type]

    return {
        "negation": lambda text: opposites(text, f"not {text}") if may_have_opposites(text) else None,
        "duplicates": lambda text: compared(wording(text), wording(f"a {text}")),
        "sentences of duplicates": compared_sentences,
        "names of files": lambda text: _are_files([text]),
        "invisible signs": without_invisible,
        "front matter": lambda text: front_matter(numbered(f"---\n{text}\n---\n")),
        "markdown": lambda text: list(markdown_blocks(numbered(text))),
        "a table's rule": _is_delimiter,
        "plain text of markdown": lambda text: plain(without_links(text)),
        "org": lambda text: list(org_lines(numbered(text))),
        "rst": lambda text: list(rst_lines(numbered(text))),
        "asciidoc": lambda text: list(adoc_lines(numbered(text))),
        "sentences": sentence_spans,
        "paragraphs": paragraphs_of,
        "words": lambda text: (word_count(text), with_blanks(text)),
        "prose": lambda text: (is_prose(text.split("\n")), is_wrapped(text.split("\n"))),
        "wiki": lambda text: (clean_markup(text), heading_in(text), is_sentence_like(text)),
        "a terminal": printable,
        "written queries": lambda text: (answered(text), quoted(text)),
        "words of a search": lambda text: (folded(text), analyzer("english")(text)),
        "exclusion": divided,
        "a query": lambda text: (searched_words(text, "English"), typed(text)),
        "dates": is_date,
    }  # fmt: skip


@pytest.mark.parametrize("name", looks())
def test_every_look_at_a_text_is_linear(name):
    look, length, late = looks()[name], 10_000, {}
    look("A text of a few words, for what is made once.")  # type: ignore[operator]
    for kind in KINDS:
        text = kind * (length // len(kind))
        begun = time.thread_time()
        look(text)  # type: ignore[operator]
        if (took := time.thread_time() - begun) > 0.5:  # a second for 100,000 signs, and what a loaded machine adds
            late[kind] = round(took, 2)
    assert late == {}
