"""The documentation of an installed package: text of a domain that every machine has, with a search test in it.

The docstrings of scientific Python follow numpydoc: a description, then sections. In the section 'See Also' the authors
describe other functions in their own words, which gives questions with a known answer. The descriptions alone are the
text; no question stands in it.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from likewise.corpus.options import CorpusError
from likewise.runs.whole_files import write_text

_SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}[ \t]*$", re.M)
_ROLE = re.compile(r":\w+:`~?([^`<]*)(<[^>]*>)?`")
_DIRECTIVE = re.compile(r"^\s*\.\. ", re.M)
_FEWEST_WORDS = 12  # of a description: shorter ones are stubs
_QUESTION_WORDS = 4


class Documented(NamedTuple):
    """A documented function or class.

    Attributes:
        name: without its module.
        description: the docstring up to its first section.
        see_also: (name, description) of others, as the section 'See Also' has them.
    """

    name: str
    description: str
    see_also: list[tuple[str, str]]


def write_documentation(package: str, folder: Path) -> tuple[int, int]:
    """Write the descriptions of a package's functions and classes as a corpus, with questions, in BEIR's layout.

    `corpus.jsonl` (_id, title, text) has the descriptions, `queries.jsonl` what the sections 'See Also' of others say
    about one of them, and `qrels/test.tsv` which one. Names that stand for several descriptions are left out of the
    questions.

    Args:
        package: an installed package whose docstrings follow numpydoc. It is read, and not imported.
        folder: is made.

    Returns:
        The number of descriptions and of questions.

    Raises:
        CorpusError: the package is not installed, or has no such docstrings.
    """
    found = list(_documented(package))
    unique = list({one.description: one for one in found}.values())
    if not unique:
        raise CorpusError(f"{package} has no docstrings with a description: name another package")
    names = Counter(one.name for one in unique)
    places = {one.name: str(i) for i, one in enumerate(unique) if names[one.name] == 1}
    questions = {
        text: places[name]
        for one in found
        for name, text in one.see_also
        if name in places and len(text.split()) >= _QUESTION_WORDS
    }
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    documents = ({"_id": str(i), "title": one.name, "text": one.description} for i, one in enumerate(unique))
    write_text(folder / "corpus.jsonl", "".join(f"{json.dumps(row)}\n" for row in documents))
    asked = ({"_id": f"q{i}", "text": text} for i, text in enumerate(questions))
    write_text(folder / "queries.jsonl", "".join(f"{json.dumps(row)}\n" for row in asked))
    judged = "".join(f"q{i}\t{place}\t1\n" for i, place in enumerate(questions.values()))
    write_text(folder / "qrels" / "test.tsv", judged)
    return len(unique), len(questions)


def _documented(package: str) -> Iterator[Documented]:
    """Yield the public functions and classes of a package, by file."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise CorpusError(f"the package {package} is not installed: pip install {package}")
    for path in sorted(Path(spec.origin).parent.rglob("*.py")):
        if "tests" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                one = _read(node.name, ast.get_docstring(node) or "")
                if len(one.description.split()) >= _FEWEST_WORDS:
                    yield one


def _read(name: str, docstring: str) -> Documented:
    """Return the parts of a docstring."""
    description, *rest = _SECTION.split(docstring)
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    entries: list[tuple[str, str]] = []
    for line in sections.get("See Also", "").splitlines():
        if line[:1].isspace() and entries:  # 'name', with its description in the lines below
            entries[-1] = (entries[-1][0], f"{entries[-1][1]} {line.strip()}".strip())
        elif line.strip():
            other, _, text = line.partition(" : ")
            entries.append((_plain(other).strip(" :").split(".")[-1], text.strip()))
    text = _plain(_DIRECTIVE.split(description)[0]).strip()
    return Documented(name, text, [(other, _plain(said)) for other, said in entries])


def _plain(text: str) -> str:
    """Return text without the marks of reStructuredText."""
    return _ROLE.sub(r"\1", text).replace("`", "")
